-- Who may call, and what was done to that: keys of the API and the operator's log.

-- +goose Up
CREATE TABLE api_keys (
    id           TEXT NOT NULL PRIMARY KEY,
    owner        TEXT NOT NULL,        -- whose rows callers with the key see
    name         TEXT NOT NULL,        -- for people; several may have one
    secret_hash  TEXT NOT NULL,        -- SHA-256 of the secret, in hex: the secret itself is nowhere
    scopes       TEXT NOT NULL,        -- words with spaces: read write metrics
    created_at   DATETIME NOT NULL,
    expires_at   DATETIME,             -- NULL = never
    last_used_at DATETIME,             -- NULL = never; to the minute
    revoked_at   DATETIME              -- NULL = it is valid
);
CREATE UNIQUE INDEX api_keys_secret ON api_keys (secret_hash);
CREATE INDEX api_keys_created ON api_keys (created_at, id);

CREATE TABLE audit_log (
    id         TEXT NOT NULL PRIMARY KEY,
    owner      TEXT NOT NULL,          -- whose things it was about; empty = nobody's alone
    actor      TEXT NOT NULL,          -- who did it
    action     TEXT NOT NULL,          -- key.created, sessions.purged …
    target     TEXT NOT NULL,          -- what it was done to
    details    TEXT,                   -- JSON; never a secret
    created_at DATETIME NOT NULL
);
CREATE INDEX audit_log_created ON audit_log (created_at, id);

-- +goose Down
DROP TABLE audit_log;
DROP TABLE api_keys;
