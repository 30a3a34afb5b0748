-- Who may call, and what was done to that: keys of the API and the operator's log.

-- +goose Up
CREATE TABLE api_keys (
    id           uuid PRIMARY KEY,
    owner        text NOT NULL,        -- whose rows callers with the key see
    name         text NOT NULL,        -- for people; several may have one
    secret_hash  text NOT NULL,        -- SHA-256 of the secret, in hex: the secret itself is nowhere
    scopes       text NOT NULL,        -- words with spaces: read write metrics
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz,          -- NULL = never
    last_used_at timestamptz,          -- NULL = never; to the minute
    revoked_at   timestamptz           -- NULL = it is valid
);
CREATE UNIQUE INDEX api_keys_secret ON api_keys (secret_hash);
CREATE INDEX api_keys_created ON api_keys (created_at, id);

CREATE TABLE audit_log (
    id         uuid PRIMARY KEY,
    owner      text NOT NULL,          -- whose things it was about; empty = nobody's alone
    actor      text NOT NULL,          -- who did it
    action     text NOT NULL,          -- key.created, sessions.purged …
    target     text NOT NULL,          -- what it was done to
    details    jsonb,                  -- never a secret
    created_at timestamptz NOT NULL
);
CREATE INDEX audit_log_created ON audit_log (created_at, id);

-- +goose Down
DROP TABLE audit_log;
DROP TABLE api_keys;
