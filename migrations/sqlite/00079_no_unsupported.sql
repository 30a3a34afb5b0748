-- The names and numbers of a summary that no message has are not counted any more.

-- +goose Up
ALTER TABLE session_summaries DROP COLUMN unsupported;

-- +goose Down
ALTER TABLE session_summaries ADD COLUMN unsupported TEXT; -- {"count", "examples"}; NULL = none
