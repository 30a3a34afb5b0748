-- The log, the work and the books. A row without a value for an optional id or
-- time holds NULL; optional texts are empty.

-- +goose Up
CREATE TABLE sessions (
    id             TEXT NOT NULL PRIMARY KEY,
    owner          TEXT NOT NULL,
    agent          TEXT NOT NULL DEFAULT '',
    model          TEXT NOT NULL DEFAULT '',
    title          TEXT NOT NULL DEFAULT '',
    user_id        TEXT NOT NULL DEFAULT '',
    source         TEXT NOT NULL DEFAULT '',
    timezone       TEXT NOT NULL DEFAULT '',
    instructions   TEXT NOT NULL DEFAULT '',
    metadata       TEXT,
    message_count  INTEGER NOT NULL DEFAULT 0,
    last_seq       INTEGER NOT NULL DEFAULT 0, -- of messages
    last_event_seq INTEGER NOT NULL DEFAULT 0, -- of session_events
    last_queue_seq INTEGER NOT NULL DEFAULT 0, -- of runs
    created_at     DATETIME NOT NULL,
    updated_at     DATETIME NOT NULL,
    archived_at    DATETIME
);
CREATE INDEX sessions_activity ON sessions (owner, updated_at, id);
CREATE INDEX sessions_user_activity ON sessions (owner, user_id, updated_at, id);

CREATE TABLE messages (
    id                TEXT NOT NULL PRIMARY KEY,
    session_id        TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    owner             TEXT NOT NULL,
    seq               INTEGER NOT NULL,
    parent_id         TEXT REFERENCES messages (id),
    on_path           BOOLEAN NOT NULL DEFAULT true,
    role              TEXT NOT NULL,
    content           TEXT NOT NULL DEFAULT '',
    parts             TEXT,
    status            TEXT NOT NULL,
    tool_calls        TEXT,
    tool_call_id      TEXT NOT NULL DEFAULT '',
    tool_name         TEXT NOT NULL DEFAULT '',
    model             TEXT NOT NULL DEFAULT '',
    finish_reason     TEXT NOT NULL DEFAULT '',
    token_count       INTEGER NOT NULL DEFAULT 0,
    pinned            BOOLEAN NOT NULL DEFAULT false,
    source            TEXT NOT NULL DEFAULT '',
    author            TEXT NOT NULL DEFAULT '',
    run_id            TEXT,
    client_message_id TEXT,
    origin_id         TEXT, -- of a fork: the message it is a copy of
    metadata          TEXT,
    created_at        DATETIME NOT NULL,
    deleted_at        DATETIME
);
CREATE UNIQUE INDEX messages_seq ON messages (session_id, seq);
CREATE UNIQUE INDEX messages_client_message_id ON messages (session_id, client_message_id) WHERE client_message_id IS NOT NULL;
CREATE INDEX messages_path ON messages (session_id, seq) WHERE on_path;
CREATE INDEX messages_pinned ON messages (session_id, seq) WHERE pinned;
CREATE INDEX messages_parent ON messages (parent_id);

CREATE TABLE runs (
    id                 TEXT NOT NULL PRIMARY KEY,
    session_id         TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    owner              TEXT NOT NULL,
    user_id            TEXT NOT NULL DEFAULT '',
    queue_seq          INTEGER NOT NULL,
    status             TEXT NOT NULL,
    agent              TEXT NOT NULL DEFAULT '',
    agent_version      TEXT NOT NULL DEFAULT '',
    model              TEXT NOT NULL DEFAULT '',
    input              TEXT NOT NULL,
    user_message_id    TEXT NOT NULL,
    client_message_id  TEXT,
    multitask          TEXT NOT NULL DEFAULT '',
    attempt            INTEGER NOT NULL DEFAULT 0,
    lease_owner        TEXT NOT NULL DEFAULT '',
    lease_until        DATETIME, -- by the database's clock
    cancel_requested   BOOLEAN NOT NULL DEFAULT false,
    partial            TEXT NOT NULL DEFAULT '',
    state              TEXT,
    context            TEXT,
    error              TEXT,
    input_tokens       INTEGER NOT NULL DEFAULT 0,
    output_tokens      INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens   INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    answer_id          TEXT,
    created_at         DATETIME NOT NULL,
    started_at         DATETIME,
    finished_at        DATETIME
);
CREATE UNIQUE INDEX runs_queue_seq ON runs (session_id, queue_seq);
CREATE UNIQUE INDEX runs_client_message_id ON runs (session_id, client_message_id) WHERE client_message_id IS NOT NULL;
-- The last guard of "one run at a time in a session".
CREATE UNIQUE INDEX runs_one_active ON runs (session_id) WHERE status IN ('running', 'waiting');
CREATE INDEX runs_queued ON runs (session_id, queue_seq) WHERE status = 'queued';
CREATE INDEX runs_leases ON runs (lease_until) WHERE status = 'running';

CREATE TABLE session_events (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    event_seq  INTEGER NOT NULL,
    owner      TEXT NOT NULL,
    type       TEXT NOT NULL,
    run_id     TEXT,
    at         DATETIME NOT NULL,
    data       TEXT NOT NULL, -- a replay gives the bytes that were published
    PRIMARY KEY (session_id, event_seq)
);

CREATE TABLE tool_executions (
    run_id      TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    call_id     TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    owner       TEXT NOT NULL,
    attempt     INTEGER NOT NULL,
    tool        TEXT NOT NULL,
    started_at  DATETIME NOT NULL,
    finished_at DATETIME,
    PRIMARY KEY (run_id, call_id)
);

-- No reference to the session: the books outlive it.
CREATE TABLE model_calls (
    id                 TEXT NOT NULL PRIMARY KEY,
    owner              TEXT NOT NULL,
    user_id            TEXT NOT NULL DEFAULT '',
    session_id         TEXT,
    run_id             TEXT,
    agent              TEXT NOT NULL DEFAULT '',
    purpose            TEXT NOT NULL,
    model              TEXT NOT NULL,
    provider           TEXT NOT NULL DEFAULT '',
    estimated_tokens   INTEGER NOT NULL DEFAULT 0,
    input_tokens       INTEGER NOT NULL DEFAULT 0,
    output_tokens      INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens   INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    finish_reason      TEXT NOT NULL DEFAULT '',
    error              TEXT NOT NULL DEFAULT '',
    duration_ns        INTEGER NOT NULL DEFAULT 0,
    created_at         DATETIME NOT NULL
);
CREATE INDEX model_calls_session ON model_calls (session_id);

CREATE TABLE memories (
    id              TEXT NOT NULL PRIMARY KEY,
    owner           TEXT NOT NULL,
    user_id         TEXT NOT NULL DEFAULT '',
    content         TEXT NOT NULL,
    metadata        TEXT,
    embedding       BLOB, -- float32, little endian
    embedding_model TEXT NOT NULL DEFAULT '',
    created_at      DATETIME NOT NULL,
    updated_at      DATETIME NOT NULL
);
CREATE INDEX memories_owner ON memories (owner, user_id, created_at, id);

CREATE TABLE blobs (
    id         TEXT NOT NULL PRIMARY KEY,
    owner      TEXT NOT NULL,
    session_id TEXT,
    media_type TEXT NOT NULL,
    name       TEXT NOT NULL DEFAULT '',
    size       INTEGER NOT NULL,
    sha256     text NOT NULL,
    data       BLOB NOT NULL,
    created_at DATETIME NOT NULL
);
CREATE INDEX blobs_session ON blobs (session_id);

CREATE TABLE idempotency_keys (
    owner        TEXT NOT NULL,
    key          TEXT NOT NULL,
    target       TEXT NOT NULL, -- method and path
    request_hash TEXT NOT NULL,
    status       INTEGER,        -- of the answer; NULL = still being worked on
    content_type TEXT NOT NULL DEFAULT '',
    body         BLOB,
    created_at   DATETIME NOT NULL,
    expires_at   DATETIME NOT NULL,
    PRIMARY KEY (owner, key)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

-- What a model's tokens are compared with ours: a fact about models, so nobody's.
CREATE TABLE model_calibrations (
    model      TEXT NOT NULL PRIMARY KEY,
    factor     REAL NOT NULL,
    deviation  REAL NOT NULL,
    samples    INTEGER NOT NULL,
    updated_at DATETIME NOT NULL
);

-- +goose Down
DROP TABLE model_calibrations;
DROP TABLE idempotency_keys;
DROP TABLE blobs;
DROP TABLE memories;
DROP TABLE model_calls;
DROP TABLE tool_executions;
DROP TABLE session_events;
DROP TABLE runs;
DROP TABLE messages;
DROP TABLE sessions;
