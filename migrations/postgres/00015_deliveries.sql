-- What has to reach somebody outside, and where runs and sessions tell of themselves.

-- +goose Up
ALTER TABLE sessions
    ADD COLUMN webhook_url    text NOT NULL DEFAULT '',
    ADD COLUMN webhook_secret text NOT NULL DEFAULT '';
ALTER TABLE runs
    ADD COLUMN webhook_url    text NOT NULL DEFAULT '',
    ADD COLUMN webhook_secret text NOT NULL DEFAULT '';

CREATE TABLE deliveries (
    id          uuid PRIMARY KEY,
    owner       text NOT NULL,
    session_id  uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    run_id      uuid NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    kind        text NOT NULL,
    event       text NOT NULL,
    target      text NOT NULL,
    secret      text NOT NULL DEFAULT '',
    state       text NOT NULL,
    attempt     bigint NOT NULL DEFAULT 0,
    tries       bigint NOT NULL DEFAULT 0,
    since       timestamptz NOT NULL,
    lease_owner text NOT NULL DEFAULT '',
    lease_until timestamptz, -- by the database's clock
    next_at     timestamptz, -- likewise; NULL = at once
    error       text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL,
    finished_at timestamptz
);
CREATE INDEX deliveries_pending ON deliveries (created_at, id) WHERE state = 'pending';
CREATE INDEX deliveries_run ON deliveries (run_id);
CREATE INDEX deliveries_session ON deliveries (session_id);

-- +goose Down
DROP TABLE deliveries;
ALTER TABLE runs
    DROP COLUMN webhook_secret,
    DROP COLUMN webhook_url;
ALTER TABLE sessions
    DROP COLUMN webhook_secret,
    DROP COLUMN webhook_url;
