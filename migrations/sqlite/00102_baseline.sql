-- The schema of version 0.9.0. A row without a value for an optional id or time holds NULL;
-- optional texts are empty. All ends of leases are by the database's clock.

-- +goose Up
CREATE TABLE sessions (
    id                       TEXT NOT NULL PRIMARY KEY,
    owner                    TEXT NOT NULL,
    agent                    TEXT NOT NULL DEFAULT '',
    model                    TEXT NOT NULL DEFAULT '',
    title                    TEXT NOT NULL DEFAULT '',
    user_id                  TEXT NOT NULL DEFAULT '',
    source                   TEXT NOT NULL DEFAULT '',
    timezone                 TEXT NOT NULL DEFAULT '',
    instructions             TEXT NOT NULL DEFAULT '',
    metadata                 TEXT,
    message_count            INTEGER NOT NULL DEFAULT 0,
    last_seq                 INTEGER NOT NULL DEFAULT 0, -- of messages
    last_event_seq           INTEGER NOT NULL DEFAULT 0, -- of session_events
    last_queue_seq           INTEGER NOT NULL DEFAULT 0, -- of runs
    created_at               DATETIME NOT NULL,
    updated_at               DATETIME NOT NULL,
    archived_at              DATETIME,
    conversation_summary     TEXT,
    summary_through_id       TEXT REFERENCES messages (id),
    summary_through_seq      INTEGER NOT NULL DEFAULT 0,
    summary_version          INTEGER NOT NULL DEFAULT 0,
    summary_tokens           INTEGER NOT NULL DEFAULT 0,
    summarized_count         INTEGER NOT NULL DEFAULT 0,
    summary_count            INTEGER NOT NULL DEFAULT 0,
    last_summarized_at       DATETIME,
    prompt_state             TEXT,
    prompt_revision          INTEGER NOT NULL DEFAULT 0,
    titled_at                DATETIME, -- when the title was made or set; NULL = never
    summary_lease_owner      TEXT NOT NULL DEFAULT '',
    summary_lease_until      DATETIME, -- by the database's clock
    summary_failures         INTEGER NOT NULL DEFAULT 0, -- of the model, in a row
    summary_failure          TEXT NOT NULL DEFAULT '', -- the last one
    summary_breaker_until    DATETIME, -- by the database's clock
    title_message_id         TEXT, -- the question of which the last title was made that was not set
    title_made               BOOLEAN NOT NULL DEFAULT false, -- the title is that one
    webhook_url              TEXT NOT NULL DEFAULT '',
    webhook_secret           TEXT NOT NULL DEFAULT '',
    busy                     TEXT NOT NULL DEFAULT '',
    busy_owner               TEXT NOT NULL DEFAULT '', -- who does it
    busy_until               DATETIME, -- the end of the owner's lease, by the database's clock
    usage_calls              INTEGER NOT NULL DEFAULT 0,
    usage_input_tokens       INTEGER NOT NULL DEFAULT 0,
    usage_output_tokens      INTEGER NOT NULL DEFAULT 0,
    usage_reasoning_tokens   INTEGER NOT NULL DEFAULT 0,
    usage_cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
    usage_cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    usage_cost_micro_usd     INTEGER NOT NULL DEFAULT 0,
    usage_unpriced_calls     INTEGER NOT NULL DEFAULT 0,
    full_event_seq           INTEGER NOT NULL DEFAULT 0, -- up to it events hold whole messages
    summary_made_for         INTEGER NOT NULL DEFAULT 0, -- of the version in use
    summary_tokens_covered   INTEGER NOT NULL DEFAULT 0,
    summary_lease_since      DATETIME, -- when the summary that is being made began, by the database's clock
    pinned                   BOOLEAN NOT NULL DEFAULT false,
    tags                     TEXT, -- a list of texts as JSON; NULL = none
    slack                    BOOLEAN NOT NULL DEFAULT false, -- a row of slack_threads is bound to it
    speakers                 TEXT NOT NULL DEFAULT '', -- core.AfterSpeaker
    temporary                BOOLEAN NOT NULL DEFAULT false,
    indexed_seq              INTEGER NOT NULL DEFAULT -1, -- no more than session_readers.seq of the search index; finds what is not indexed
    standing_count           INTEGER NOT NULL DEFAULT 0, -- rows of standing_instructions
    native_summary           TEXT, -- of the active version
    stored_bytes             BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX sessions_summary_through ON sessions (summary_through_id) WHERE summary_through_id IS NOT NULL;
CREATE INDEX sessions_summary_leases ON sessions (summary_lease_until) WHERE summary_lease_until IS NOT NULL;
CREATE INDEX sessions_archived ON sessions (archived_at, id) WHERE archived_at IS NOT NULL;
CREATE INDEX sessions_busy ON sessions (id) WHERE busy <> '';
CREATE INDEX sessions_archived_activity ON sessions (owner, updated_at, id) WHERE archived_at IS NOT NULL;
CREATE INDEX sessions_archived_user_activity ON sessions (owner, user_id, updated_at, id) WHERE archived_at IS NOT NULL;
CREATE INDEX sessions_archived_created ON sessions (owner, created_at, id) WHERE archived_at IS NOT NULL;
CREATE INDEX sessions_activity ON sessions (owner, updated_at, id) WHERE archived_at IS NULL AND NOT temporary;
CREATE INDEX sessions_user_activity ON sessions (owner, user_id, updated_at, id) WHERE archived_at IS NULL AND NOT temporary;
CREATE INDEX sessions_agent_activity ON sessions (owner, agent, updated_at, id) WHERE archived_at IS NULL AND NOT temporary;
CREATE INDEX sessions_created ON sessions (owner, created_at, id) WHERE archived_at IS NULL AND NOT temporary;
CREATE INDEX sessions_temporary ON sessions (updated_at, id) WHERE temporary;
CREATE INDEX sessions_temporary_user ON sessions (owner, user_id, id) WHERE temporary;
CREATE INDEX sessions_unindexed ON sessions (updated_at, id) WHERE indexed_seq < last_seq AND NOT temporary;
CREATE INDEX sessions_pinned ON sessions (owner, updated_at, id) WHERE pinned;
CREATE INDEX sessions_user_pinned ON sessions (owner, user_id, updated_at, id) WHERE pinned;

CREATE TABLE session_readers (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    reader     TEXT NOT NULL,
    owner      TEXT NOT NULL,
    seq        INTEGER NOT NULL, -- messages up to this one are read; below 1: nothing
    behind     BOOLEAN NOT NULL DEFAULT false, -- there are messages beyond them; of the reader of vectors
    PRIMARY KEY (session_id, reader)
);
CREATE INDEX session_readers_behind ON session_readers (session_id) WHERE behind;

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
    deleted_at        DATETIME,
    feedback          TEXT, -- core.Feedback as JSON
    revised_at        DATETIME, -- NULL: never
    author_id         TEXT NOT NULL DEFAULT '', -- the user
    named             BOOLEAN NOT NULL DEFAULT false -- prompts show the author's name
);
CREATE UNIQUE INDEX messages_seq ON messages (session_id, seq);
CREATE UNIQUE INDEX messages_client_message_id ON messages (session_id, client_message_id) WHERE client_message_id IS NOT NULL;
CREATE INDEX messages_path ON messages (session_id, seq) WHERE on_path;
CREATE INDEX messages_pinned ON messages (session_id, seq) WHERE pinned;
CREATE INDEX messages_parent ON messages (parent_id);
CREATE INDEX messages_roots ON messages (session_id, seq) WHERE parent_id IS NULL;
CREATE INDEX messages_origin ON messages (origin_id) WHERE origin_id IS NOT NULL;

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
    finished_at        DATETIME,
    webhook_url        TEXT NOT NULL DEFAULT '',
    webhook_secret     TEXT NOT NULL DEFAULT '',
    last_write         TEXT NOT NULL DEFAULT '',
    deaths             INTEGER NOT NULL DEFAULT 0,
    give_backs         INTEGER NOT NULL DEFAULT 0,
    first_event_seq    INTEGER NOT NULL DEFAULT 0, -- 0 = not kept when the column was made
    options            TEXT, -- core.RunOptions
    request_hash       TEXT NOT NULL DEFAULT '' -- empty = there was no key
);
CREATE UNIQUE INDEX runs_queue_seq ON runs (session_id, queue_seq);
CREATE UNIQUE INDEX runs_client_message_id ON runs (session_id, client_message_id) WHERE client_message_id IS NOT NULL;
CREATE UNIQUE INDEX runs_one_active ON runs (session_id) WHERE status IN ('running', 'waiting');
CREATE INDEX runs_queued ON runs (session_id, queue_seq) WHERE status = 'queued';
CREATE INDEX runs_leases ON runs (lease_until) WHERE status = 'running';
CREATE INDEX runs_unfinished ON runs (owner) WHERE status IN ('queued', 'running');
CREATE INDEX runs_user_message ON runs (user_message_id);

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
CREATE INDEX session_events_age ON session_events (at, session_id, event_seq);

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

-- No reference to the session: usage outlives it.
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
    created_at         DATETIME NOT NULL,
    cost_micro_usd     INTEGER -- NULL = the price or the usage is not known
);
CREATE INDEX model_calls_session ON model_calls (session_id);
CREATE INDEX model_calls_time ON model_calls (owner, created_at);

CREATE TABLE memories (
    id              TEXT NOT NULL PRIMARY KEY,
    owner           TEXT NOT NULL,
    user_id         TEXT NOT NULL DEFAULT '',
    content         TEXT NOT NULL,
    metadata        TEXT,
    embedding       BLOB, -- float32, little endian
    embedding_model TEXT NOT NULL DEFAULT '',
    created_at      DATETIME NOT NULL,
    updated_at      DATETIME NOT NULL,
    dimension       INTEGER NOT NULL DEFAULT 0, -- of embedding; 0 = none
    revision        INTEGER NOT NULL DEFAULT 0 -- number of the last write among the owner's
);
CREATE INDEX memories_owner ON memories (owner, user_id, created_at, id);
CREATE INDEX memories_created ON memories (owner, created_at, id);
CREATE INDEX memories_vectors ON memories (owner, embedding_model, dimension, user_id, id);
CREATE INDEX memories_changes ON memories (owner, revision);
CREATE INDEX memories_walk ON memories (owner, id);

CREATE TABLE idempotency_keys (
    owner        TEXT NOT NULL,
    key          TEXT NOT NULL,
    target       TEXT NOT NULL, -- method and path
    request_hash TEXT NOT NULL,
    status       INTEGER, -- of the answer; NULL = still being worked on
    content_type TEXT NOT NULL DEFAULT '',
    body         BLOB,
    created_at   DATETIME NOT NULL,
    expires_at   DATETIME NOT NULL,
    location     TEXT NOT NULL DEFAULT '',
    result       TEXT NOT NULL DEFAULT '',
    result_hash  TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (owner, key)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

-- What a model's tokens are compared with ours: a fact about models, so nobody's.
CREATE TABLE model_calibrations (
    model                TEXT NOT NULL PRIMARY KEY,
    factor               REAL NOT NULL,
    deviation            REAL NOT NULL,
    samples              INTEGER NOT NULL,
    updated_at           DATETIME NOT NULL,
    told_window          INTEGER NOT NULL DEFAULT 0, -- tokens; 0 = none
    told_at              DATETIME,
    contract             TEXT NOT NULL DEFAULT '', -- free, drops, refuses; empty = not known
    refuses_tool_changes BOOLEAN NOT NULL DEFAULT false
);

CREATE TABLE session_summaries (
    id                 TEXT NOT NULL PRIMARY KEY,
    session_id         TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    owner              TEXT NOT NULL,
    version            INTEGER NOT NULL,
    kind               TEXT NOT NULL,
    state              TEXT NOT NULL,
    content            TEXT NOT NULL,
    from_id            TEXT,
    through_id         TEXT,
    from_seq           INTEGER NOT NULL DEFAULT 0,
    through_seq        INTEGER NOT NULL DEFAULT 0,
    messages_covered   INTEGER NOT NULL DEFAULT 0,
    messages_added     INTEGER NOT NULL DEFAULT 0,
    tokens_before      INTEGER NOT NULL DEFAULT 0,
    tokens_after       INTEGER NOT NULL DEFAULT 0,
    token_count        INTEGER NOT NULL DEFAULT 0,
    model              TEXT NOT NULL DEFAULT '',
    strategy           TEXT NOT NULL DEFAULT '',
    trigger            TEXT NOT NULL DEFAULT '',
    focus              TEXT NOT NULL DEFAULT '',
    note               TEXT NOT NULL DEFAULT '',
    duration_ns        INTEGER NOT NULL DEFAULT 0,
    created_at         DATETIME NOT NULL,
    activated_at       DATETIME, -- NULL = never in use
    ordered_seq        INTEGER NOT NULL DEFAULT 0,
    messages_shortened INTEGER NOT NULL DEFAULT 0,
    made_for           INTEGER NOT NULL DEFAULT 0, -- trigger of the model that needed it, in cl100k_base tokens; 0 = it holds for every model
    tokens_covered     INTEGER NOT NULL DEFAULT 0, -- of the messages that it covers; compared with other versions only
    native             TEXT -- what is sent back, and what it is valid for; null = none
);
CREATE UNIQUE INDEX session_summaries_version ON session_summaries (session_id, version);
CREATE UNIQUE INDEX session_summaries_active ON session_summaries (session_id) WHERE kind = 'rolling' AND state = 'active';
CREATE UNIQUE INDEX session_summaries_prepared ON session_summaries (session_id) WHERE kind = 'rolling' AND state = 'prepared';

-- n grows with the time of the message: its millisecond, and 20 bits for those
-- of the same one, in the order in which they came. So the newest entries are the
-- last rows of the index, and a search ends as soon as it has enough of them.
CREATE TABLE search_entries (
    n          INTEGER NOT NULL PRIMARY KEY,
    owner      TEXT NOT NULL,
    session_id TEXT NOT NULL, -- without a reference, which would lock the row of the session
    message_id TEXT REFERENCES messages (id) ON DELETE CASCADE, -- NULL: the session's title
    created_at DATETIME NOT NULL, -- to the millisecond
    seq        INTEGER NOT NULL DEFAULT 0, -- of the message
    on_path    BOOLEAN NOT NULL DEFAULT true,
    length     INTEGER NOT NULL DEFAULT 0,
    terms      BLOB
);
CREATE UNIQUE INDEX search_entries_message ON search_entries (message_id);
CREATE INDEX search_entries_session ON search_entries (session_id, created_at, n);
CREATE INDEX search_entries_seq ON search_entries (session_id, seq);

-- The words come in their final form, divided by blanks. Only the index of them is
-- kept, by the n of their entry.
CREATE VIRTUAL TABLE search_words USING fts5 (
    words, parts, scope,
    content = '', contentless_delete = 1, tokenize = "ascii tokenchars '_'"
);

-- An entry and its words are written by one statement. Base is the n of the first
-- entry of a millisecond.
CREATE VIEW search_new AS
    SELECT n AS base, owner, session_id, message_id, created_at, seq, on_path, length, terms, '' AS words, '' AS parts, '' AS scope FROM search_entries;
-- +goose StatementBegin
CREATE TRIGGER search_entries_delete AFTER DELETE ON search_entries BEGIN
    DELETE FROM search_words WHERE rowid = old.n;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER search_new_insert INSTEAD OF INSERT ON search_new BEGIN
    INSERT INTO search_entries (n, owner, session_id, message_id, created_at, seq, on_path, length, terms)
    VALUES (
        (SELECT COALESCE(MAX(n) + 1, new.base) FROM search_entries WHERE n >= new.base AND n < new.base + 1048576),
        new.owner, new.session_id, new.message_id, new.created_at, new.seq, new.on_path, new.length, new.terms
    );
    INSERT INTO search_words (rowid, words, parts, scope) VALUES (last_insert_rowid(), new.words, new.parts, new.scope);
END;
-- +goose StatementEnd

CREATE TABLE blob_contents (
    owner      TEXT NOT NULL,
    sha256     TEXT NOT NULL,
    size       INTEGER NOT NULL,
    created_at DATETIME NOT NULL,
    data       BLOB NOT NULL, -- last: the others are read without it
    PRIMARY KEY (owner, sha256)
);

CREATE TABLE blobs (
    id           TEXT NOT NULL PRIMARY KEY,
    owner        TEXT NOT NULL,
    user_id      TEXT NOT NULL DEFAULT '',
    session_id   TEXT, -- for which it was uploaded, if for one only
    sha256       TEXT NOT NULL,
    media_type   TEXT NOT NULL,
    name         TEXT NOT NULL,
    size         INTEGER NOT NULL,
    width        INTEGER NOT NULL DEFAULT 0,
    height       INTEGER NOT NULL DEFAULT 0,
    token_count  INTEGER NOT NULL DEFAULT 0,
    created_at   DATETIME NOT NULL,
    uploaded_at  DATETIME NOT NULL, -- last; a sweep counts from here
    unreferenced BOOLEAN NOT NULL DEFAULT true,
    pages        INTEGER NOT NULL DEFAULT 0,
    blank_pages  INTEGER NOT NULL DEFAULT 0,
    extracted    BOOLEAN NOT NULL DEFAULT false, -- there is a row in blob_texts
    FOREIGN KEY (owner, sha256) REFERENCES blob_contents (owner, sha256)
);
CREATE UNIQUE INDEX blobs_same ON blobs (owner, user_id, sha256, name);
CREATE INDEX blobs_content ON blobs (owner, sha256);
CREATE INDEX blobs_session ON blobs (session_id);
CREATE INDEX blobs_unreferenced ON blobs (uploaded_at) WHERE unreferenced;
CREATE INDEX blobs_listed ON blobs (owner, created_at, id);

-- From the moment in which a message is accepted, when it is not in the log yet.
CREATE TABLE blob_references (
    message_id TEXT NOT NULL,
    blob_id    TEXT NOT NULL REFERENCES blobs (id),
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    owner      TEXT NOT NULL,
    PRIMARY KEY (message_id, blob_id)
);
CREATE INDEX blob_references_blob ON blob_references (blob_id);
CREATE INDEX blob_references_session ON blob_references (session_id);

CREATE TABLE memory_revisions (
    owner    TEXT NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL -- number of the newest write
);

-- Only the newest are kept: who missed more than those reads everything again.
CREATE TABLE memory_deletions (
    owner     TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    revision  INTEGER NOT NULL,
    PRIMARY KEY (owner, memory_id)
);
CREATE INDEX memory_deletions_revision ON memory_deletions (owner, revision);

CREATE TABLE api_keys (
    id           TEXT NOT NULL PRIMARY KEY,
    owner        TEXT NOT NULL, -- whose rows callers with the key see
    name         TEXT NOT NULL, -- for people; several may have one
    secret_hash  TEXT NOT NULL, -- SHA-256 of the secret, in hex: the secret itself is nowhere
    scopes       TEXT NOT NULL, -- words with spaces: read write metrics
    created_at   DATETIME NOT NULL,
    expires_at   DATETIME, -- NULL = never
    last_used_at DATETIME, -- NULL = never; to the minute
    revoked_at   DATETIME -- NULL = it is valid
);
CREATE UNIQUE INDEX api_keys_secret ON api_keys (secret_hash);
CREATE INDEX api_keys_created ON api_keys (created_at, id);

CREATE TABLE audit_log (
    id         TEXT NOT NULL PRIMARY KEY,
    owner      TEXT NOT NULL, -- whose things it was about; empty = nobody's alone
    actor      TEXT NOT NULL, -- who did it
    action     TEXT NOT NULL, -- key.created, sessions.purged …
    target     TEXT NOT NULL, -- what it was done to
    details    TEXT, -- JSON; never a secret
    created_at DATETIME NOT NULL
);
CREATE INDEX audit_log_created ON audit_log (created_at, id);

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
    error       TEXT NOT NULL DEFAULT '',
    created_at  DATETIME NOT NULL,
    finished_at DATETIME,
    receiver    TEXT NOT NULL DEFAULT '', -- the host that target names, and its port
    due_at      DATETIME NOT NULL DEFAULT '1970-01-01 00:00:00+00:00' -- by the database's clock: the next try, or the end of the lease
);
CREATE INDEX deliveries_run ON deliveries (run_id);
CREATE INDEX deliveries_session ON deliveries (session_id);
CREATE INDEX deliveries_due ON deliveries (receiver, due_at, id) WHERE state = 'pending';
CREATE INDEX deliveries_state ON deliveries (state, id);

CREATE TABLE approvals (
    id               TEXT NOT NULL PRIMARY KEY,
    run_id           TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    session_id       TEXT NOT NULL,
    owner            TEXT NOT NULL,
    call_id          TEXT NOT NULL,
    tool             TEXT NOT NULL,
    arguments        TEXT NOT NULL DEFAULT '',
    mode             TEXT NOT NULL,
    status           TEXT NOT NULL,
    comment          TEXT NOT NULL DEFAULT '',
    decided_by       TEXT NOT NULL DEFAULT '',
    requested_at     DATETIME NOT NULL,
    expires_at       DATETIME, -- by the database's clock; NULL = never
    decided_at       DATETIME,
    kind             TEXT NOT NULL DEFAULT 'approval',
    edited_arguments TEXT NOT NULL DEFAULT '', -- in place of arguments
    result           TEXT NOT NULL DEFAULT '', -- of an answered call
    failed           BOOLEAN NOT NULL DEFAULT false, -- the result is an error
    definition       TEXT NOT NULL DEFAULT '' -- a hash; what was asked for before has none
);
CREATE INDEX approvals_open ON approvals (expires_at) WHERE status = 'open';
CREATE INDEX approvals_session ON approvals (session_id, tool);
CREATE INDEX approvals_call ON approvals (run_id, call_id);

CREATE TABLE write_checks (
    id         INTEGER NOT NULL PRIMARY KEY,
    checked_at DATETIME
);
INSERT INTO write_checks (id) VALUES (1);

-- A call is added to up to four rows, one of each level: what all calls of the owner came
-- to (all), those of a user (user), of a session (session), and of a user in a session
-- (user_session). Rows of levels without session to which many sessions add are split into
-- shards, so that these do not wait for each other.
CREATE TABLE usage_days (
    owner              TEXT NOT NULL,
    level              TEXT NOT NULL,
    user_id            TEXT NOT NULL, -- empty where the level has none, and of calls without one
    session_id         TEXT NOT NULL, -- likewise, and of sessions that were purged
    day                TEXT NOT NULL, -- of UTC: 2026-01-31
    agent              TEXT NOT NULL, -- empty of levels with a session
    model              TEXT NOT NULL, -- likewise
    shard              INTEGER NOT NULL,
    calls              INTEGER NOT NULL,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    cost_micro_usd     INTEGER NOT NULL,
    unpriced_calls     INTEGER NOT NULL,
    spent_tokens       INTEGER NOT NULL, -- that count against a limit
    PRIMARY KEY (owner, level, user_id, session_id, day, agent, model, shard)
);

-- The ids in a kept answer and in the path of its request, and its users as "user "
-- and the name.
CREATE TABLE idempotency_mentions (
    owner   TEXT NOT NULL,
    key     TEXT NOT NULL,
    mention TEXT NOT NULL,
    PRIMARY KEY (mention, owner, key),
    FOREIGN KEY (owner, key) REFERENCES idempotency_keys (owner, key) ON DELETE CASCADE
);
CREATE INDEX idempotency_mentions_key ON idempotency_mentions (owner, key);

-- What uploads count against: of an owner each content once, of a user each file.
CREATE TABLE blob_totals (
    owner   TEXT NOT NULL,
    by_user BOOLEAN NOT NULL,
    user_id TEXT NOT NULL, -- empty without by_user
    bytes   INTEGER NOT NULL,
    blobs   INTEGER NOT NULL,
    PRIMARY KEY (owner, by_user, user_id)
);

-- Receivers that the last try did not reach.
CREATE TABLE receiver_outages (
    receiver TEXT NOT NULL PRIMARY KEY,
    tries    INTEGER NOT NULL, -- since it was reached last
    since    DATETIME NOT NULL -- of the first of them; by the database's clock
);

CREATE TABLE blob_texts (
    owner       TEXT NOT NULL,
    sha256      TEXT NOT NULL,
    pages       INTEGER NOT NULL DEFAULT 0,
    blank_pages INTEGER NOT NULL DEFAULT 0, -- of these: without text
    created_at  DATETIME NOT NULL,
    text        TEXT NOT NULL,
    PRIMARY KEY (owner, sha256),
    FOREIGN KEY (owner, sha256) REFERENCES blob_contents (owner, sha256) ON DELETE CASCADE
);

-- What links to files are signed with; all processes have the same one.
CREATE TABLE signing_keys (
    purpose    TEXT NOT NULL PRIMARY KEY,
    created_at DATETIME NOT NULL,
    secret     BLOB NOT NULL
);

CREATE TABLE owner_webhooks (
    owner      TEXT NOT NULL PRIMARY KEY,
    url        TEXT NOT NULL,
    secret     TEXT NOT NULL DEFAULT '',
    updated_at DATETIME NOT NULL
);

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
    finished_at DATETIME,
    slack_posts BOOLEAN NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX deletions_open ON deletions (owner, kind, target) WHERE finished_at IS NULL;
CREATE INDEX deletions_due ON deletions (due_at) WHERE finished_at IS NULL;
CREATE INDEX deletions_target ON deletions (owner, kind, target, created_at);
CREATE INDEX deletions_finished ON deletions (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE session_aliases (
    owner      TEXT NOT NULL,
    surface    TEXT NOT NULL,
    alias      TEXT NOT NULL,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (owner, surface, alias)
);
CREATE INDEX session_aliases_session ON session_aliases (session_id);

CREATE TABLE slack_inbox (
    id          TEXT NOT NULL PRIMARY KEY,
    owner       TEXT NOT NULL,
    app         TEXT NOT NULL,
    item_key    TEXT NOT NULL, -- channel and ts of a message, else the id of the event
    kind        TEXT NOT NULL,
    lane        TEXT NOT NULL, -- handled one after the other, by position
    position    TEXT NOT NULL, -- a timestamp of Slack
    user_id     TEXT NOT NULL DEFAULT '',
    gesture     TEXT NOT NULL DEFAULT '', -- who wrote it where, and the client_msg_id
    payload     TEXT NOT NULL, -- empty when it is done
    session_id  TEXT,
    attempts    INTEGER NOT NULL DEFAULT 0,
    error       TEXT NOT NULL DEFAULT '', -- of the last attempt
    lease_owner TEXT NOT NULL DEFAULT '',
    due_at      DATETIME NOT NULL, -- the next attempt, or the end of the lease; by the database's clock
    created_at  DATETIME NOT NULL,
    finished_at DATETIME
);
CREATE UNIQUE INDEX slack_inbox_item ON slack_inbox (app, item_key);
CREATE INDEX slack_inbox_lane ON slack_inbox (lane, position, id) WHERE finished_at IS NULL;
CREATE INDEX slack_inbox_due ON slack_inbox (due_at) WHERE finished_at IS NULL;
CREATE INDEX slack_inbox_finished ON slack_inbox (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX slack_inbox_gesture ON slack_inbox (app, gesture) WHERE gesture <> '';
CREATE INDEX slack_inbox_user ON slack_inbox (owner, user_id) WHERE user_id <> '';
CREATE INDEX slack_inbox_session ON slack_inbox (session_id) WHERE session_id IS NOT NULL;

CREATE TABLE slack_threads (
    team        TEXT NOT NULL,
    channel     TEXT NOT NULL,
    thread      TEXT NOT NULL, -- ts of its first message
    enterprise  TEXT NOT NULL DEFAULT '',
    session_id  TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    owner       TEXT NOT NULL,
    mode        TEXT NOT NULL,
    first_seq   INTEGER NOT NULL DEFAULT 0, -- of messages: those up to it are not posted
    sent_seq    INTEGER NOT NULL DEFAULT 0, -- of events: what they report was posted
    last_seq    INTEGER NOT NULL DEFAULT 0, -- of events: the session's newest
    lease_owner TEXT NOT NULL DEFAULT '',
    lease_until DATETIME, -- by the database's clock
    due_at      DATETIME NOT NULL, -- the next attempt, or the end of the lease; likewise
    created_at  DATETIME NOT NULL,
    reason      TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (team, channel, thread)
);
CREATE UNIQUE INDEX slack_threads_session ON slack_threads (session_id);
CREATE INDEX slack_threads_behind ON slack_threads (due_at) WHERE sent_seq < last_seq AND mode IN ('two_way', 'to_slack');
CREATE INDEX slack_threads_leases ON slack_threads (lease_owner) WHERE lease_owner <> '';

CREATE TABLE slack_posts (
    session_id TEXT NOT NULL, -- no reference: it would lock the session after the thread
    item_id    TEXT NOT NULL, -- a message or an approval
    part       INTEGER NOT NULL, -- 0, 1, 2 … of a long text
    owner      TEXT NOT NULL,
    kind       TEXT NOT NULL,
    team       TEXT NOT NULL,
    channel    TEXT NOT NULL,
    thread     TEXT NOT NULL,
    ts         TEXT NOT NULL DEFAULT '', -- Slack's id in the channel; empty until it is known
    state      TEXT NOT NULL,
    streaming  BOOLEAN NOT NULL DEFAULT false,
    off_path   BOOLEAN NOT NULL DEFAULT false, -- marked in Slack as not on the current path
    text_from  INTEGER NOT NULL DEFAULT 0, -- bytes of the message
    text_to    INTEGER NOT NULL DEFAULT 0,
    hash       TEXT NOT NULL DEFAULT '', -- of what was sent last
    error      TEXT NOT NULL DEFAULT '',
    created_at DATETIME NOT NULL,
    PRIMARY KEY (session_id, item_id, part)
);
CREATE UNIQUE INDEX slack_posts_ts ON slack_posts (team, channel, ts) WHERE ts <> '';

CREATE TABLE message_revisions (
    message_id  TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    number      INTEGER NOT NULL, -- 1, 2, 3 …
    session_id  TEXT NOT NULL,
    owner       TEXT NOT NULL,
    content     TEXT NOT NULL,
    token_count INTEGER NOT NULL DEFAULT 0,
    replaced_at DATETIME NOT NULL,
    PRIMARY KEY (message_id, number)
);
CREATE INDEX message_revisions_session ON message_revisions (session_id);

CREATE TABLE slack_installations (
    team        TEXT NOT NULL PRIMARY KEY, -- id of the workspace, or of the organization, for all of its workspaces
    enterprise  TEXT NOT NULL DEFAULT '',
    name        TEXT NOT NULL DEFAULT '',
    app         TEXT NOT NULL,
    bot_user    TEXT NOT NULL,
    owner       TEXT NOT NULL, -- of the sessions
    scopes      TEXT NOT NULL,
    tokens      BLOB, -- sealed; NULL when revoked
    state       TEXT NOT NULL,
    expires_at  DATETIME, -- of the bot token; NULL = never
    lease_until DATETIME, -- while a process rotates the tokens; by the database's clock
    created_at  DATETIME NOT NULL,
    updated_at  DATETIME NOT NULL
);

CREATE TABLE message_vectors (
    message_id TEXT NOT NULL PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    session_id TEXT NOT NULL,
    owner      TEXT NOT NULL,
    model      TEXT NOT NULL,
    dimension  INTEGER NOT NULL, -- 0 = the model refused the text
    embedding  BLOB -- float32, little endian
);
CREATE INDEX message_vectors_session ON message_vectors (session_id, message_id);

CREATE TABLE message_vector_work (
    id           INTEGER NOT NULL PRIMARY KEY, -- 1: there is one row
    model        TEXT NOT NULL DEFAULT '',
    dimension    INTEGER NOT NULL DEFAULT 0,
    worker       TEXT NOT NULL DEFAULT '',
    leased_until DATETIME
);
INSERT INTO message_vector_work (id) VALUES (1);

CREATE TABLE standing_instructions (
    id         TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL,
    owner      TEXT NOT NULL,
    message_id TEXT REFERENCES messages (id) ON DELETE CASCADE, -- NULL: added by hand
    seq        INTEGER NOT NULL, -- of the message; by hand: of the last message at that time
    number     INTEGER NOT NULL DEFAULT 0, -- within its message: 1, 2, 3 …
    text       TEXT NOT NULL,
    language   TEXT NOT NULL DEFAULT '',
    topic      TEXT NOT NULL DEFAULT '',
    withdraws  BOOLEAN NOT NULL DEFAULT FALSE, -- it takes an earlier one back
    amends     BOOLEAN NOT NULL DEFAULT FALSE, -- it stands only if it finds an earlier one to change
    created_at DATETIME NOT NULL,
    edited_at  DATETIME, -- NULL: as it was written
    removed_at DATETIME -- NULL: not removed by hand
);
CREATE INDEX standing_instructions_session ON standing_instructions (session_id, seq);
CREATE INDEX standing_instructions_message ON standing_instructions (message_id);

CREATE TABLE prompt_setups (
    session_id    TEXT NOT NULL,
    hash          TEXT NOT NULL, -- of the texts
    owner         TEXT NOT NULL,
    system_prompt TEXT NOT NULL,
    tool_usage    TEXT NOT NULL,
    tools         TEXT NOT NULL, -- JSON, byte for byte
    created_at    DATETIME NOT NULL,
    PRIMARY KEY (session_id, hash)
);
