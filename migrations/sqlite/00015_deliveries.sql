-- What has to reach somebody outside, and where runs and sessions tell of themselves.

-- +goose Up
ALTER TABLE sessions ADD COLUMN webhook_url TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN webhook_secret TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN webhook_url TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN webhook_secret TEXT NOT NULL DEFAULT '';

CREATE TABLE deliveries (
    id          TEXT NOT NULL PRIMARY KEY,
    owner       TEXT NOT NULL,
    session_id  TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    run_id      TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    kind        TEXT NOT NULL,
    event       TEXT NOT NULL,
    target      TEXT NOT NULL,
    secret      TEXT NOT NULL DEFAULT '',
    state       TEXT NOT NULL,
    attempt     INTEGER NOT NULL DEFAULT 0,
    tries       INTEGER NOT NULL DEFAULT 0,
    since       DATETIME NOT NULL,
    lease_owner TEXT NOT NULL DEFAULT '',
    lease_until DATETIME, -- by the database's clock
    next_at     DATETIME, -- likewise; NULL = at once
    error       TEXT NOT NULL DEFAULT '',
    created_at  DATETIME NOT NULL,
    finished_at DATETIME
);
CREATE INDEX deliveries_pending ON deliveries (created_at, id) WHERE state = 'pending';
CREATE INDEX deliveries_run ON deliveries (run_id);
CREATE INDEX deliveries_session ON deliveries (session_id);

-- +goose Down
DROP TABLE deliveries;
ALTER TABLE runs DROP COLUMN webhook_secret;
ALTER TABLE runs DROP COLUMN webhook_url;
ALTER TABLE sessions DROP COLUMN webhook_secret;
ALTER TABLE sessions DROP COLUMN webhook_url;
