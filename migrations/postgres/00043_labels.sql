-- What people sort their sessions by.

-- +goose Up
ALTER TABLE sessions
    ADD COLUMN pinned boolean NOT NULL DEFAULT false,
    ADD COLUMN tags   jsonb; -- a list of texts; NULL = none

-- +goose Down
ALTER TABLE sessions
    DROP COLUMN tags,
    DROP COLUMN pinned;
