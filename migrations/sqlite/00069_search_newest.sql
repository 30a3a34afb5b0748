-- The index of the newest messages is only on PostgreSQL.

-- +goose Up
SELECT 1;

-- +goose Down
SELECT 1;
