-- What people sort their sessions by.

-- +goose Up
ALTER TABLE sessions ADD COLUMN pinned BOOLEAN NOT NULL DEFAULT false;
ALTER TABLE sessions ADD COLUMN tags TEXT; -- a list of texts as JSON; NULL = none

-- +goose Down
ALTER TABLE sessions DROP COLUMN tags;
ALTER TABLE sessions DROP COLUMN pinned;
