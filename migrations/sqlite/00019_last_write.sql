-- Which write of its run was the last, so that one that is tried again after its
-- answer got lost is not done twice.

-- +goose Up
ALTER TABLE runs ADD COLUMN last_write TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE runs DROP COLUMN last_write;
