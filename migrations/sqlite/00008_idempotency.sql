-- The header Location is a part of an answer that is given again.

-- +goose Up
ALTER TABLE idempotency_keys ADD COLUMN location TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE idempotency_keys DROP COLUMN location;
