-- Summaries that are made ahead, who is making one, and how often that failed.

-- +goose Up
ALTER TABLE session_summaries ADD COLUMN activated_at timestamptz; -- NULL = never in use
UPDATE session_summaries SET activated_at = created_at;
CREATE UNIQUE INDEX session_summaries_prepared ON session_summaries (session_id) WHERE kind = 'rolling' AND state = 'prepared';

ALTER TABLE sessions
    ADD COLUMN summary_lease_owner   text NOT NULL DEFAULT '',
    ADD COLUMN summary_lease_until   timestamptz, -- by the database's clock
    ADD COLUMN summary_failures      bigint NOT NULL DEFAULT 0, -- of the model, in a row
    ADD COLUMN summary_failure       text NOT NULL DEFAULT '',  -- the last one
    ADD COLUMN summary_breaker_until timestamptz; -- by the database's clock
CREATE INDEX sessions_summary_leases ON sessions (summary_lease_until) WHERE summary_lease_until IS NOT NULL;

-- +goose Down
DROP INDEX sessions_summary_leases;
ALTER TABLE sessions
    DROP COLUMN summary_breaker_until,
    DROP COLUMN summary_failure,
    DROP COLUMN summary_failures,
    DROP COLUMN summary_lease_until,
    DROP COLUMN summary_lease_owner;
DROP INDEX session_summaries_prepared;
DELETE FROM session_summaries WHERE activated_at IS NULL; -- nothing refers to them
ALTER TABLE session_summaries DROP COLUMN activated_at;
