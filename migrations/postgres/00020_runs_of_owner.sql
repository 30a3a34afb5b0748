-- How many runs of an owner are at work or wait: what a limit is held against.

-- +goose Up
CREATE INDEX runs_unfinished ON runs (owner) WHERE status IN ('queued', 'running');

-- +goose Down
DROP INDEX runs_unfinished;
