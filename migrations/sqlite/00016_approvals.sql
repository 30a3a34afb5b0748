-- The questions whether a tool may start, and what was decided.

-- +goose Up
CREATE TABLE approvals (
    id           TEXT NOT NULL PRIMARY KEY,
    run_id       TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    session_id   TEXT NOT NULL,
    owner        TEXT NOT NULL,
    call_id      TEXT NOT NULL,
    tool         TEXT NOT NULL,
    arguments    TEXT NOT NULL DEFAULT '',
    mode         TEXT NOT NULL,
    status       TEXT NOT NULL,
    comment      TEXT NOT NULL DEFAULT '',
    decided_by   TEXT NOT NULL DEFAULT '',
    requested_at DATETIME NOT NULL,
    expires_at   DATETIME, -- by the database's clock; NULL = never
    decided_at   DATETIME
);
CREATE UNIQUE INDEX approvals_call ON approvals (run_id, call_id);
CREATE INDEX approvals_open ON approvals (expires_at) WHERE status = 'open';
CREATE INDEX approvals_session ON approvals (session_id, tool);

-- +goose Down
DROP TABLE approvals;
