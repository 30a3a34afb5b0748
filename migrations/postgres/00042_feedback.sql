-- What people say of messages.

-- +goose Up
ALTER TABLE messages ADD COLUMN feedback jsonb; -- core.Feedback as JSON

-- +goose Down
ALTER TABLE messages DROP COLUMN feedback;
