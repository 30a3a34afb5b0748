-- What a run does otherwise than its agent.

-- +goose Up
ALTER TABLE runs ADD COLUMN options TEXT; -- core.RunOptions

-- +goose Down
ALTER TABLE runs DROP COLUMN options;
