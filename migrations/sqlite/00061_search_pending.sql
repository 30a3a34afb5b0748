-- FTS5 groups the words of a transaction by itself.

-- +goose Up
SELECT 1;

-- +goose Down
SELECT 1;
