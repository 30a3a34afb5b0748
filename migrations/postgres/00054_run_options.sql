-- What a run does otherwise than its agent.

-- +goose Up
ALTER TABLE runs ADD COLUMN options json; -- core.RunOptions; not jsonb: models read schemas in the order of their keys

-- +goose Down
ALTER TABLE runs DROP COLUMN options;
