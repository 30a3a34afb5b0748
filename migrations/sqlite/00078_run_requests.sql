-- A request that repeats an idempotency key is compared with the one that began the run.

-- +goose Up
ALTER TABLE runs ADD COLUMN request_hash TEXT NOT NULL DEFAULT ''; -- empty = there was no key

-- +goose Down
ALTER TABLE runs DROP COLUMN request_hash;
