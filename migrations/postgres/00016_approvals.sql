-- The questions whether a tool may start, and what was decided.

-- +goose Up
CREATE TABLE approvals (
    id           uuid NOT NULL PRIMARY KEY,
    run_id       uuid NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    session_id   uuid NOT NULL,
    owner        text NOT NULL,
    call_id      text NOT NULL,
    tool         text NOT NULL,
    arguments    text NOT NULL DEFAULT '',
    mode         text NOT NULL,
    status       text NOT NULL,
    comment      text NOT NULL DEFAULT '',
    decided_by   text NOT NULL DEFAULT '',
    requested_at timestamptz NOT NULL,
    expires_at   timestamptz, -- by the database's clock; NULL = never
    decided_at   timestamptz
);
CREATE UNIQUE INDEX approvals_call ON approvals (run_id, call_id);
CREATE INDEX approvals_open ON approvals (expires_at) WHERE status = 'open';
CREATE INDEX approvals_session ON approvals (session_id, tool);

-- +goose Down
DROP TABLE approvals;
