-- Summaries that a provider wrote with its own compaction, beside the version that covers the same messages.

-- +goose Up
ALTER TABLE session_summaries ADD COLUMN native jsonb; -- what is sent back, and what it is valid for; null = none
ALTER TABLE sessions ADD COLUMN native_summary jsonb; -- of the active version

-- +goose Down
ALTER TABLE sessions DROP COLUMN native_summary;
ALTER TABLE session_summaries DROP COLUMN native;
