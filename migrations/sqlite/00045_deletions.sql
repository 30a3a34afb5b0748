-- Sessions and users that are to be deleted for good.

-- +goose Up
CREATE TABLE deletions (
    id          TEXT NOT NULL PRIMARY KEY,
    owner       TEXT NOT NULL,
    kind        TEXT NOT NULL,
    target      TEXT NOT NULL, -- a session's id, or the hash of a user
    user_hash   TEXT NOT NULL DEFAULT '', -- whose it is
    user_id     TEXT NOT NULL DEFAULT '', -- who is deleted; empty when it is done
    actor       TEXT NOT NULL,
    plan        TEXT, -- what was there at the beginning; NULL when it is done
    rows_total  INTEGER NOT NULL DEFAULT 0,
    rows_left   INTEGER NOT NULL DEFAULT 0,
    attempts    INTEGER NOT NULL DEFAULT 0,
    report      TEXT, -- NULL until it is done
    error       TEXT NOT NULL DEFAULT '', -- of the last attempt
    lease_owner TEXT NOT NULL DEFAULT '',
    due_at      DATETIME NOT NULL, -- the next attempt, or the end of the lease; by the database's clock
    created_at  DATETIME NOT NULL,
    finished_at DATETIME
);
CREATE UNIQUE INDEX deletions_open ON deletions (owner, kind, target) WHERE finished_at IS NULL;
CREATE INDEX deletions_due ON deletions (due_at) WHERE finished_at IS NULL;
CREATE INDEX deletions_target ON deletions (owner, kind, target, created_at);
CREATE INDEX deletions_finished ON deletions (finished_at) WHERE finished_at IS NOT NULL;

-- +goose Down
DROP TABLE deletions;
