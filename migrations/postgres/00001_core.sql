-- The log, the work and the books. A row without a value for an optional id or
-- time holds NULL; optional texts are empty.

-- +goose Up
CREATE TABLE sessions (
    id             uuid PRIMARY KEY,
    owner          text NOT NULL,
    agent          text NOT NULL DEFAULT '',
    model          text NOT NULL DEFAULT '',
    title          text NOT NULL DEFAULT '',
    user_id        text NOT NULL DEFAULT '',
    source         text NOT NULL DEFAULT '',
    timezone       text NOT NULL DEFAULT '',
    instructions   text NOT NULL DEFAULT '',
    metadata       jsonb,
    message_count  bigint NOT NULL DEFAULT 0,
    last_seq       bigint NOT NULL DEFAULT 0, -- of messages
    last_event_seq bigint NOT NULL DEFAULT 0, -- of session_events
    last_queue_seq bigint NOT NULL DEFAULT 0, -- of runs
    created_at     timestamptz NOT NULL,
    updated_at     timestamptz NOT NULL,
    archived_at    timestamptz
);
CREATE INDEX sessions_activity ON sessions (owner, updated_at, id);
CREATE INDEX sessions_user_activity ON sessions (owner, user_id, updated_at, id);

CREATE TABLE messages (
    id                uuid PRIMARY KEY,
    session_id        uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    owner             text NOT NULL,
    seq               bigint NOT NULL,
    parent_id         uuid REFERENCES messages (id),
    on_path           boolean NOT NULL DEFAULT true,
    role              text NOT NULL,
    content           text NOT NULL DEFAULT '',
    parts             jsonb,
    status            text NOT NULL,
    tool_calls        jsonb,
    tool_call_id      text NOT NULL DEFAULT '',
    tool_name         text NOT NULL DEFAULT '',
    model             text NOT NULL DEFAULT '',
    finish_reason     text NOT NULL DEFAULT '',
    token_count       bigint NOT NULL DEFAULT 0,
    pinned            boolean NOT NULL DEFAULT false,
    source            text NOT NULL DEFAULT '',
    author            text NOT NULL DEFAULT '',
    run_id            uuid,
    client_message_id text,
    origin_id         uuid, -- of a fork: the message it is a copy of
    metadata          jsonb,
    created_at        timestamptz NOT NULL,
    deleted_at        timestamptz
);
CREATE UNIQUE INDEX messages_seq ON messages (session_id, seq);
CREATE UNIQUE INDEX messages_client_message_id ON messages (session_id, client_message_id) WHERE client_message_id IS NOT NULL;
CREATE INDEX messages_path ON messages (session_id, seq) WHERE on_path;
CREATE INDEX messages_pinned ON messages (session_id, seq) WHERE pinned;
CREATE INDEX messages_parent ON messages (parent_id);

CREATE TABLE runs (
    id                 uuid PRIMARY KEY,
    session_id         uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    owner              text NOT NULL,
    user_id            text NOT NULL DEFAULT '',
    queue_seq          bigint NOT NULL,
    status             text NOT NULL,
    agent              text NOT NULL DEFAULT '',
    agent_version      text NOT NULL DEFAULT '',
    model              text NOT NULL DEFAULT '',
    input              jsonb NOT NULL,
    user_message_id    uuid NOT NULL,
    client_message_id  text,
    multitask          text NOT NULL DEFAULT '',
    attempt            bigint NOT NULL DEFAULT 0,
    lease_owner        text NOT NULL DEFAULT '',
    lease_until        timestamptz, -- by the database's clock
    cancel_requested   boolean NOT NULL DEFAULT false,
    partial            text NOT NULL DEFAULT '',
    state              jsonb,
    context            jsonb,
    error              jsonb,
    input_tokens       bigint NOT NULL DEFAULT 0,
    output_tokens      bigint NOT NULL DEFAULT 0,
    reasoning_tokens   bigint NOT NULL DEFAULT 0,
    cache_read_tokens  bigint NOT NULL DEFAULT 0,
    cache_write_tokens bigint NOT NULL DEFAULT 0,
    answer_id          uuid,
    created_at         timestamptz NOT NULL,
    started_at         timestamptz,
    finished_at        timestamptz
);
CREATE UNIQUE INDEX runs_queue_seq ON runs (session_id, queue_seq);
CREATE UNIQUE INDEX runs_client_message_id ON runs (session_id, client_message_id) WHERE client_message_id IS NOT NULL;
-- The last guard of "one run at a time in a session".
CREATE UNIQUE INDEX runs_one_active ON runs (session_id) WHERE status IN ('running', 'waiting');
CREATE INDEX runs_queued ON runs (session_id, queue_seq) WHERE status = 'queued';
CREATE INDEX runs_leases ON runs (lease_until) WHERE status = 'running';

CREATE TABLE session_events (
    session_id uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    event_seq  bigint NOT NULL,
    owner      text NOT NULL,
    type       text NOT NULL,
    run_id     uuid,
    at         timestamptz NOT NULL,
    data       json NOT NULL, -- not jsonb: a replay gives the bytes that were published
    PRIMARY KEY (session_id, event_seq)
);

CREATE TABLE tool_executions (
    run_id      uuid NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    call_id     text NOT NULL,
    session_id  uuid NOT NULL,
    owner       text NOT NULL,
    attempt     bigint NOT NULL,
    tool        text NOT NULL,
    started_at  timestamptz NOT NULL,
    finished_at timestamptz,
    PRIMARY KEY (run_id, call_id)
);

-- No reference to the session: the books outlive it.
CREATE TABLE model_calls (
    id                 uuid PRIMARY KEY,
    owner              text NOT NULL,
    user_id            text NOT NULL DEFAULT '',
    session_id         uuid,
    run_id             uuid,
    agent              text NOT NULL DEFAULT '',
    purpose            text NOT NULL,
    model              text NOT NULL,
    provider           text NOT NULL DEFAULT '',
    estimated_tokens   bigint NOT NULL DEFAULT 0,
    input_tokens       bigint NOT NULL DEFAULT 0,
    output_tokens      bigint NOT NULL DEFAULT 0,
    reasoning_tokens   bigint NOT NULL DEFAULT 0,
    cache_read_tokens  bigint NOT NULL DEFAULT 0,
    cache_write_tokens bigint NOT NULL DEFAULT 0,
    finish_reason      text NOT NULL DEFAULT '',
    error              text NOT NULL DEFAULT '',
    duration_ns        bigint NOT NULL DEFAULT 0,
    created_at         timestamptz NOT NULL
);
CREATE INDEX model_calls_session ON model_calls (session_id);

CREATE TABLE memories (
    id              uuid PRIMARY KEY,
    owner           text NOT NULL,
    user_id         text NOT NULL DEFAULT '',
    content         text NOT NULL,
    metadata        jsonb,
    embedding       bytea, -- float32, little endian
    embedding_model text NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL
);
CREATE INDEX memories_owner ON memories (owner, user_id, created_at, id);

CREATE TABLE blobs (
    id         uuid PRIMARY KEY,
    owner      text NOT NULL,
    session_id uuid,
    media_type text NOT NULL,
    name       text NOT NULL DEFAULT '',
    size       bigint NOT NULL,
    sha256     text NOT NULL,
    data       bytea NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE INDEX blobs_session ON blobs (session_id);

CREATE TABLE idempotency_keys (
    owner        text NOT NULL,
    key          text NOT NULL,
    target       text NOT NULL, -- method and path
    request_hash text NOT NULL,
    status       bigint,        -- of the answer; NULL = still being worked on
    content_type text NOT NULL DEFAULT '',
    body         bytea,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (owner, key)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

-- What a model's tokens are compared with ours: a fact about models, so nobody's.
CREATE TABLE model_calibrations (
    model      text PRIMARY KEY,
    factor     double precision NOT NULL,
    deviation  double precision NOT NULL,
    samples    bigint NOT NULL,
    updated_at timestamptz NOT NULL
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
