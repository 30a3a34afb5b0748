-- What model calls cost, and sessions that were given a title.

-- +goose Up
ALTER TABLE model_calls ADD COLUMN cost_micro_usd bigint; -- NULL = the price or the usage is not known
-- All that a day's spending is added up from.
CREATE INDEX model_calls_spent ON model_calls (owner, created_at, input_tokens, output_tokens, estimated_tokens, cost_micro_usd, error);

ALTER TABLE sessions ADD COLUMN titled_at timestamptz; -- when the title was made or set; NULL = never

-- +goose Down
ALTER TABLE sessions DROP COLUMN titled_at;
DROP INDEX model_calls_spent;
ALTER TABLE model_calls DROP COLUMN cost_micro_usd;
