-- Names, numbers and paths of a summary that occur nowhere in what it covers: how many
-- there are, and the first of them.

-- +goose Up
ALTER TABLE session_summaries ADD COLUMN unsupported jsonb; -- {"count", "examples"}; NULL = none

-- +goose Down
ALTER TABLE session_summaries DROP COLUMN unsupported;
