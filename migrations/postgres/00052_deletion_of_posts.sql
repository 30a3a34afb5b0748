-- Deletions may also delete what was posted in Slack.

-- +goose Up
ALTER TABLE deletions ADD COLUMN slack_posts BOOLEAN NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE deletions DROP COLUMN slack_posts;
