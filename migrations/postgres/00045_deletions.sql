-- Sessions and users that are to be deleted for good.

-- +goose Up
CREATE TABLE deletions (
    id          uuid PRIMARY KEY,
    owner       text NOT NULL,
    kind        text NOT NULL,
    target      text NOT NULL, -- a session's id, or the hash of a user
    user_hash   text NOT NULL DEFAULT '', -- whose it is
    user_id     text NOT NULL DEFAULT '', -- who is deleted; empty when it is done
    actor       text NOT NULL,
    plan        jsonb, -- what was there at the beginning; NULL when it is done
    rows_total  bigint NOT NULL DEFAULT 0,
    rows_left   bigint NOT NULL DEFAULT 0,
    attempts    bigint NOT NULL DEFAULT 0,
    report      jsonb, -- NULL until it is done
    error       text NOT NULL DEFAULT '', -- of the last attempt
    lease_owner text NOT NULL DEFAULT '',
    due_at      timestamptz NOT NULL, -- the next attempt, or the end of the lease; by the database's clock
    created_at  timestamptz NOT NULL,
    finished_at timestamptz
);
CREATE UNIQUE INDEX deletions_open ON deletions (owner, kind, target) WHERE finished_at IS NULL;
CREATE INDEX deletions_due ON deletions (due_at) WHERE finished_at IS NULL;
CREATE INDEX deletions_target ON deletions (owner, kind, target, created_at);
CREATE INDEX deletions_finished ON deletions (finished_at) WHERE finished_at IS NOT NULL;

-- +goose Down
DROP TABLE deletions;
