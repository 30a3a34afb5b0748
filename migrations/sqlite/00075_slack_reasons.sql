-- Why the last attempt to post to a thread of Slack failed.

-- +goose Up
ALTER TABLE slack_threads ADD COLUMN reason TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE slack_threads DROP COLUMN reason;
