-- What a request with an idempotency key has committed (result) and the hash of its body,
-- written by the transaction that commits it: a repetition finds it although the answer,
-- or the outcome of the COMMIT, got lost. Empty = nothing is committed.

-- +goose Up
ALTER TABLE idempotency_keys ADD COLUMN result text NOT NULL DEFAULT '';
ALTER TABLE idempotency_keys ADD COLUMN result_hash text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE idempotency_keys DROP COLUMN result_hash;
ALTER TABLE idempotency_keys DROP COLUMN result;
