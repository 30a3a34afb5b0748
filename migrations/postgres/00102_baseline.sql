-- The schema of version 0.9.0. A row without a value for an optional id or time holds NULL;
-- optional texts are empty. All ends of leases are by the database's clock.

-- +goose Up
CREATE TABLE sessions (
    id                       uuid PRIMARY KEY,
    owner                    text NOT NULL,
    agent                    text NOT NULL DEFAULT '',
    model                    text NOT NULL DEFAULT '',
    title                    text NOT NULL DEFAULT '',
    user_id                  text NOT NULL DEFAULT '',
    source                   text NOT NULL DEFAULT '',
    timezone                 text NOT NULL DEFAULT '',
    instructions             text NOT NULL DEFAULT '',
    metadata                 jsonb,
    message_count            bigint NOT NULL DEFAULT 0,
    last_seq                 bigint NOT NULL DEFAULT 0, -- of messages
    last_event_seq           bigint NOT NULL DEFAULT 0, -- of session_events
    last_queue_seq           bigint NOT NULL DEFAULT 0, -- of runs
    created_at               timestamptz NOT NULL,
    updated_at               timestamptz NOT NULL,
    archived_at              timestamptz,
    conversation_summary     text,
    summary_through_id       uuid,
    summary_through_seq      bigint NOT NULL DEFAULT 0,
    summary_version          bigint NOT NULL DEFAULT 0,
    summary_tokens           bigint NOT NULL DEFAULT 0,
    summarized_count         bigint NOT NULL DEFAULT 0,
    summary_count            bigint NOT NULL DEFAULT 0,
    last_summarized_at       timestamptz,
    prompt_state             jsonb,
    prompt_revision          bigint NOT NULL DEFAULT 0,
    titled_at                timestamptz, -- when the title was made or set; NULL = never
    summary_lease_owner      text NOT NULL DEFAULT '',
    summary_lease_until      timestamptz,
    summary_failures         bigint NOT NULL DEFAULT 0,
    summary_failure          text NOT NULL DEFAULT '',
    summary_breaker_until    timestamptz,
    title_message_id         uuid, -- the question of which the last title was made that was not set
    title_made               boolean NOT NULL DEFAULT false, -- the title is that one
    webhook_url              text NOT NULL DEFAULT '',
    webhook_secret           text NOT NULL DEFAULT '',
    busy                     text NOT NULL DEFAULT '',
    busy_owner               text NOT NULL DEFAULT '', -- who does it
    busy_until               timestamptz, -- the end of the owner's lease, by the database's clock
    usage_calls              bigint NOT NULL DEFAULT 0,
    usage_input_tokens       bigint NOT NULL DEFAULT 0,
    usage_output_tokens      bigint NOT NULL DEFAULT 0,
    usage_reasoning_tokens   bigint NOT NULL DEFAULT 0,
    usage_cache_read_tokens  bigint NOT NULL DEFAULT 0,
    usage_cache_write_tokens bigint NOT NULL DEFAULT 0,
    usage_cost_micro_usd     bigint NOT NULL DEFAULT 0,
    usage_unpriced_calls     bigint NOT NULL DEFAULT 0,
    full_event_seq           bigint NOT NULL DEFAULT 0, -- up to it events hold whole messages
    summary_made_for         bigint NOT NULL DEFAULT 0, -- of the version in use
    summary_tokens_covered   bigint NOT NULL DEFAULT 0,
    summary_lease_since      timestamptz, -- when the summary that is being made began, by the database's clock
    pinned                   boolean NOT NULL DEFAULT false,
    tags                     jsonb,
    slack                    boolean NOT NULL DEFAULT false, -- a row of slack_threads is bound to it
    speakers                 text NOT NULL DEFAULT '', -- core.AfterSpeaker
    temporary                boolean NOT NULL DEFAULT false,
    indexed_seq              bigint NOT NULL DEFAULT -1, -- no more than session_readers.seq of the search index; finds what is not indexed
    standing_count           bigint NOT NULL DEFAULT 0, -- rows of standing_instructions
    native_summary           jsonb, -- of the active version
    stored_bytes             bigint NOT NULL DEFAULT 0
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
    session_id uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    reader     text NOT NULL,
    owner      text NOT NULL,
    seq        bigint NOT NULL, -- messages up to this one are read; below 1: nothing
    behind     boolean NOT NULL DEFAULT false, -- there are messages beyond them; of the reader of vectors
    PRIMARY KEY (session_id, reader)
);
CREATE INDEX session_readers_behind ON session_readers (session_id) WHERE behind;

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
    deleted_at        timestamptz,
    feedback          jsonb, -- core.Feedback as JSON
    revised_at        timestamptz, -- NULL: never
    author_id         text NOT NULL DEFAULT '', -- the user
    named             boolean NOT NULL DEFAULT false -- prompts show the author's name
);
CREATE UNIQUE INDEX messages_seq ON messages (session_id, seq);
CREATE UNIQUE INDEX messages_client_message_id ON messages (session_id, client_message_id) WHERE client_message_id IS NOT NULL;
CREATE INDEX messages_path ON messages (session_id, seq) WHERE on_path;
CREATE INDEX messages_pinned ON messages (session_id, seq) WHERE pinned;
CREATE INDEX messages_parent ON messages (parent_id);
CREATE INDEX messages_roots ON messages (session_id, seq) WHERE parent_id IS NULL;
CREATE INDEX messages_origin ON messages (origin_id) WHERE origin_id IS NOT NULL;

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
    finished_at        timestamptz,
    webhook_url        text NOT NULL DEFAULT '',
    webhook_secret     text NOT NULL DEFAULT '',
    last_write         text NOT NULL DEFAULT '',
    deaths             integer NOT NULL DEFAULT 0,
    give_backs         integer NOT NULL DEFAULT 0,
    first_event_seq    bigint NOT NULL DEFAULT 0, -- 0 = not kept when the column was made
    options            json, -- core.RunOptions; not jsonb: models read schemas in the order of their keys
    request_hash       text NOT NULL DEFAULT '' -- empty = there was no key
);
CREATE UNIQUE INDEX runs_queue_seq ON runs (session_id, queue_seq);
CREATE UNIQUE INDEX runs_client_message_id ON runs (session_id, client_message_id) WHERE client_message_id IS NOT NULL;
CREATE UNIQUE INDEX runs_one_active ON runs (session_id) WHERE status IN ('running', 'waiting');
CREATE INDEX runs_queued ON runs (session_id, queue_seq) WHERE status = 'queued';
CREATE INDEX runs_leases ON runs (lease_until) WHERE status = 'running';
CREATE INDEX runs_unfinished ON runs (owner) WHERE status IN ('queued', 'running');
CREATE INDEX runs_user_message ON runs (user_message_id);

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
CREATE INDEX session_events_age ON session_events (at, session_id, event_seq);

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

-- No reference to the session: usage outlives it.
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
    created_at         timestamptz NOT NULL,
    cost_micro_usd     bigint -- NULL = the price or the usage is not known
);
CREATE INDEX model_calls_session ON model_calls (session_id);
CREATE INDEX model_calls_time ON model_calls (owner, created_at);

CREATE TABLE memories (
    id              uuid PRIMARY KEY,
    owner           text NOT NULL,
    user_id         text NOT NULL DEFAULT '',
    content         text NOT NULL,
    metadata        jsonb,
    embedding       bytea, -- float32, little endian
    embedding_model text NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    dimension       bigint NOT NULL DEFAULT 0,
    revision        bigint NOT NULL DEFAULT 0
);
CREATE INDEX memories_owner ON memories (owner, user_id, created_at, id);
CREATE INDEX memories_created ON memories (owner, created_at, id);
CREATE INDEX memories_vectors ON memories (owner, embedding_model, dimension, user_id, id);
CREATE INDEX memories_changes ON memories (owner, revision);
CREATE INDEX memories_walk ON memories (owner, id);

CREATE TABLE idempotency_keys (
    owner        text NOT NULL,
    key          text NOT NULL,
    target       text NOT NULL, -- method and path
    request_hash text NOT NULL,
    status       bigint, -- of the answer; NULL = still being worked on
    content_type text NOT NULL DEFAULT '',
    body         bytea,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    location     text NOT NULL DEFAULT '',
    result       text NOT NULL DEFAULT '',
    result_hash  text NOT NULL DEFAULT '',
    PRIMARY KEY (owner, key)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

-- What a model's tokens are compared with ours: a fact about models, so nobody's.
CREATE TABLE model_calibrations (
    model                text PRIMARY KEY,
    factor               double precision NOT NULL,
    deviation            double precision NOT NULL,
    samples              bigint NOT NULL,
    updated_at           timestamptz NOT NULL,
    told_window          bigint NOT NULL DEFAULT 0,
    told_at              timestamptz,
    contract             text NOT NULL DEFAULT '', -- free, drops, refuses; empty = not known
    refuses_tool_changes boolean NOT NULL DEFAULT false
);

CREATE TABLE session_summaries (
    id                 uuid PRIMARY KEY,
    session_id         uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    owner              text NOT NULL,
    version            bigint NOT NULL,
    kind               text NOT NULL,
    state              text NOT NULL,
    content            text NOT NULL,
    from_id            uuid,
    through_id         uuid,
    from_seq           bigint NOT NULL DEFAULT 0,
    through_seq        bigint NOT NULL DEFAULT 0,
    messages_covered   bigint NOT NULL DEFAULT 0,
    messages_added     bigint NOT NULL DEFAULT 0,
    tokens_before      bigint NOT NULL DEFAULT 0,
    tokens_after       bigint NOT NULL DEFAULT 0,
    token_count        bigint NOT NULL DEFAULT 0,
    model              text NOT NULL DEFAULT '',
    strategy           text NOT NULL DEFAULT '',
    trigger            text NOT NULL DEFAULT '',
    focus              text NOT NULL DEFAULT '',
    note               text NOT NULL DEFAULT '',
    duration_ns        bigint NOT NULL DEFAULT 0,
    created_at         timestamptz NOT NULL,
    activated_at       timestamptz, -- NULL = never in use
    ordered_seq        bigint NOT NULL DEFAULT 0,
    messages_shortened bigint NOT NULL DEFAULT 0,
    made_for           bigint NOT NULL DEFAULT 0, -- trigger of the model that needed it, in cl100k_base tokens; 0 = it holds for every model
    tokens_covered     bigint NOT NULL DEFAULT 0, -- of the messages that it covers; compared with other versions only
    native             jsonb -- what is sent back, and what it is valid for; null = none
);
CREATE UNIQUE INDEX session_summaries_version ON session_summaries (session_id, version);
CREATE UNIQUE INDEX session_summaries_active ON session_summaries (session_id) WHERE kind = 'rolling' AND state = 'active';
CREATE UNIQUE INDEX session_summaries_prepared ON session_summaries (session_id) WHERE kind = 'rolling' AND state = 'prepared';

CREATE TABLE search_entries (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner      text NOT NULL,
    session_id uuid NOT NULL, -- without a reference, which would lock the row of the session
    message_id uuid REFERENCES messages (id) ON DELETE CASCADE, -- NULL: the session's title
    created_at timestamptz NOT NULL, -- to the millisecond
    words      tsvector NOT NULL,
    seq        bigint NOT NULL DEFAULT 0, -- of the message
    on_path    boolean NOT NULL DEFAULT true,
    length     bigint NOT NULL DEFAULT 0,
    terms      bytea
);
CREATE UNIQUE INDEX search_entries_message ON search_entries (message_id);
CREATE INDEX search_entries_session ON search_entries (session_id, created_at, n);
CREATE INDEX search_entries_seq ON search_entries (session_id, seq);
CREATE INDEX search_entries_newest ON search_entries (owner, created_at, n) WHERE message_id IS NOT NULL;
-- Searches scan up to 64 kB of pending words; the insert that exceeds that moves them into the tree.
CREATE INDEX search_entries_words ON search_entries USING gin (words) WITH (fastupdate = on, gin_pending_list_limit = 64);

CREATE TABLE blob_contents (
    owner      text NOT NULL,
    sha256     text NOT NULL,
    size       bigint NOT NULL,
    created_at timestamptz NOT NULL,
    data       bytea NOT NULL, -- last: the others are read without it
    PRIMARY KEY (owner, sha256)
);

CREATE TABLE blobs (
    id           uuid PRIMARY KEY,
    owner        text NOT NULL,
    user_id      text NOT NULL DEFAULT '',
    session_id   uuid, -- for which it was uploaded, if for one only
    sha256       text NOT NULL,
    media_type   text NOT NULL,
    name         text NOT NULL,
    size         bigint NOT NULL,
    width        bigint NOT NULL DEFAULT 0,
    height       bigint NOT NULL DEFAULT 0,
    token_count  bigint NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL,
    uploaded_at  timestamptz NOT NULL, -- last; a sweep counts from here
    unreferenced boolean NOT NULL DEFAULT true,
    pages        bigint NOT NULL DEFAULT 0,
    blank_pages  bigint NOT NULL DEFAULT 0,
    extracted    boolean NOT NULL DEFAULT false, -- there is a row in blob_texts
    FOREIGN KEY (owner, sha256) REFERENCES blob_contents (owner, sha256)
);
CREATE UNIQUE INDEX blobs_same ON blobs (owner, user_id, sha256, name);
CREATE INDEX blobs_content ON blobs (owner, sha256);
CREATE INDEX blobs_session ON blobs (session_id);
CREATE INDEX blobs_unreferenced ON blobs (uploaded_at) WHERE unreferenced;
CREATE INDEX blobs_listed ON blobs (owner, created_at, id);

-- From the moment in which a message is accepted, when it is not in the log yet.
CREATE TABLE blob_references (
    message_id uuid NOT NULL,
    blob_id    uuid NOT NULL REFERENCES blobs (id),
    session_id uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    owner      text NOT NULL,
    PRIMARY KEY (message_id, blob_id)
);
CREATE INDEX blob_references_blob ON blob_references (blob_id);
CREATE INDEX blob_references_session ON blob_references (session_id);

CREATE TABLE memory_revisions (
    owner    text PRIMARY KEY,
    revision bigint NOT NULL -- number of the newest write
);

-- Only the newest are kept: who missed more than those reads everything again.
CREATE TABLE memory_deletions (
    owner     text NOT NULL,
    memory_id uuid NOT NULL,
    revision  bigint NOT NULL,
    PRIMARY KEY (owner, memory_id)
);
CREATE INDEX memory_deletions_revision ON memory_deletions (owner, revision);

CREATE TABLE api_keys (
    id           uuid PRIMARY KEY,
    owner        text NOT NULL, -- whose rows callers with the key see
    name         text NOT NULL, -- for people; several may have one
    secret_hash  text NOT NULL, -- SHA-256 of the secret, in hex: the secret itself is nowhere
    scopes       text NOT NULL, -- words with spaces: read write metrics
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz, -- NULL = never
    last_used_at timestamptz, -- NULL = never; to the minute
    revoked_at   timestamptz -- NULL = it is valid
);
CREATE UNIQUE INDEX api_keys_secret ON api_keys (secret_hash);
CREATE INDEX api_keys_created ON api_keys (created_at, id);

CREATE TABLE audit_log (
    id         uuid PRIMARY KEY,
    owner      text NOT NULL, -- whose things it was about; empty = nobody's alone
    actor      text NOT NULL, -- who did it
    action     text NOT NULL, -- key.created, sessions.purged …
    target     text NOT NULL, -- what it was done to
    details    jsonb, -- never a secret
    created_at timestamptz NOT NULL
);
CREATE INDEX audit_log_created ON audit_log (created_at, id);

CREATE TABLE deliveries (
    id          uuid PRIMARY KEY,
    owner       text NOT NULL,
    session_id  uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    run_id      uuid NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    kind        text NOT NULL,
    event       text NOT NULL,
    target      text NOT NULL,
    secret      text NOT NULL DEFAULT '',
    state       text NOT NULL,
    attempt     bigint NOT NULL DEFAULT 0,
    tries       bigint NOT NULL DEFAULT 0,
    since       timestamptz NOT NULL,
    lease_owner text NOT NULL DEFAULT '',
    lease_until timestamptz, -- by the database's clock
    error       text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL,
    finished_at timestamptz,
    receiver    text NOT NULL DEFAULT '',
    due_at      timestamptz NOT NULL DEFAULT '1970-01-01 00:00:00+00'
);
CREATE INDEX deliveries_run ON deliveries (run_id);
CREATE INDEX deliveries_session ON deliveries (session_id);
CREATE INDEX deliveries_due ON deliveries (receiver, due_at, id) WHERE state = 'pending';
CREATE INDEX deliveries_state ON deliveries (state, id);

CREATE TABLE approvals (
    id               uuid PRIMARY KEY,
    run_id           uuid NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    session_id       uuid NOT NULL,
    owner            text NOT NULL,
    call_id          text NOT NULL,
    tool             text NOT NULL,
    arguments        text NOT NULL DEFAULT '',
    mode             text NOT NULL,
    status           text NOT NULL,
    comment          text NOT NULL DEFAULT '',
    decided_by       text NOT NULL DEFAULT '',
    requested_at     timestamptz NOT NULL,
    expires_at       timestamptz, -- by the database's clock; NULL = never
    decided_at       timestamptz,
    kind             text NOT NULL DEFAULT 'approval',
    edited_arguments text NOT NULL DEFAULT '', -- in place of arguments
    result           text NOT NULL DEFAULT '', -- of an answered call
    failed           boolean NOT NULL DEFAULT false, -- the result is an error
    definition       text NOT NULL DEFAULT '' -- a hash; what was asked for before has none
);
CREATE INDEX approvals_open ON approvals (expires_at) WHERE status = 'open';
CREATE INDEX approvals_session ON approvals (session_id, tool);
CREATE INDEX approvals_call ON approvals (run_id, call_id);

CREATE TABLE write_checks (
    id         integer PRIMARY KEY,
    checked_at timestamptz
);
INSERT INTO write_checks (id) VALUES (1);

-- A call is added to up to four rows, one of each level: what all calls of the owner came
-- to (all), those of a user (user), of a session (session), and of a user in a session
-- (user_session). Rows of levels without session to which many sessions add are split into
-- shards, so that these do not wait for each other.
CREATE TABLE usage_days (
    owner              text NOT NULL,
    level              text NOT NULL,
    user_id            text NOT NULL COLLATE "C", -- empty where the level has none, and of calls without one
    session_id         text NOT NULL COLLATE "C", -- likewise, and of sessions that were purged
    day                text NOT NULL, -- of UTC: 2026-01-31
    agent              text NOT NULL COLLATE "C", -- empty of levels with a session
    model              text NOT NULL COLLATE "C", -- likewise
    shard              bigint NOT NULL,
    calls              bigint NOT NULL,
    input_tokens       bigint NOT NULL,
    output_tokens      bigint NOT NULL,
    reasoning_tokens   bigint NOT NULL,
    cache_read_tokens  bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    cost_micro_usd     bigint NOT NULL,
    unpriced_calls     bigint NOT NULL,
    spent_tokens       bigint NOT NULL, -- that count against a limit
    PRIMARY KEY (owner, level, user_id, session_id, day, agent, model, shard)
);

-- The ids in a kept answer and in the path of its request, and its users as "user "
-- and the name.
CREATE TABLE idempotency_mentions (
    owner   text NOT NULL,
    key     text NOT NULL,
    mention text NOT NULL,
    PRIMARY KEY (mention, owner, key),
    FOREIGN KEY (owner, key) REFERENCES idempotency_keys (owner, key) ON DELETE CASCADE
);
CREATE INDEX idempotency_mentions_key ON idempotency_mentions (owner, key);

-- What uploads count against: of an owner each content once, of a user each file.
CREATE TABLE blob_totals (
    owner   text NOT NULL,
    by_user boolean NOT NULL,
    user_id text NOT NULL, -- empty without by_user
    bytes   bigint NOT NULL,
    blobs   bigint NOT NULL,
    PRIMARY KEY (owner, by_user, user_id)
);

-- Receivers that the last try did not reach.
CREATE TABLE receiver_outages (
    receiver text PRIMARY KEY,
    tries    bigint NOT NULL, -- since it was reached last
    since    timestamptz NOT NULL -- of the first of them; by the database's clock
);

CREATE TABLE blob_texts (
    owner       text NOT NULL,
    sha256      text NOT NULL,
    pages       bigint NOT NULL DEFAULT 0,
    blank_pages bigint NOT NULL DEFAULT 0, -- of these: without text
    created_at  timestamptz NOT NULL,
    text        text NOT NULL,
    PRIMARY KEY (owner, sha256),
    FOREIGN KEY (owner, sha256) REFERENCES blob_contents (owner, sha256) ON DELETE CASCADE
);

-- What links to files are signed with; all processes have the same one.
CREATE TABLE signing_keys (
    purpose    text PRIMARY KEY,
    created_at timestamptz NOT NULL,
    secret     bytea NOT NULL
);

CREATE TABLE owner_webhooks (
    owner      text PRIMARY KEY,
    url        text NOT NULL,
    secret     text NOT NULL DEFAULT '',
    updated_at timestamptz NOT NULL
);

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
    finished_at timestamptz,
    slack_posts boolean NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX deletions_open ON deletions (owner, kind, target) WHERE finished_at IS NULL;
CREATE INDEX deletions_due ON deletions (due_at) WHERE finished_at IS NULL;
CREATE INDEX deletions_target ON deletions (owner, kind, target, created_at);
CREATE INDEX deletions_finished ON deletions (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE session_aliases (
    owner      text NOT NULL,
    surface    text NOT NULL,
    alias      text NOT NULL,
    session_id uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (owner, surface, alias)
);
CREATE INDEX session_aliases_session ON session_aliases (session_id);

CREATE TABLE slack_inbox (
    id          uuid PRIMARY KEY,
    owner       text NOT NULL,
    app         text NOT NULL,
    item_key    text NOT NULL, -- channel and ts of a message, else the id of the event
    kind        text NOT NULL,
    lane        text NOT NULL, -- handled one after the other, by position
    position    text NOT NULL, -- a timestamp of Slack
    user_id     text NOT NULL DEFAULT '',
    gesture     text NOT NULL DEFAULT '', -- who wrote it where, and the client_msg_id
    payload     text NOT NULL, -- empty when it is done
    session_id  uuid,
    attempts    bigint NOT NULL DEFAULT 0,
    error       text NOT NULL DEFAULT '', -- of the last attempt
    lease_owner text NOT NULL DEFAULT '',
    due_at      timestamptz NOT NULL, -- the next attempt, or the end of the lease; by the database's clock
    created_at  timestamptz NOT NULL,
    finished_at timestamptz
);
CREATE UNIQUE INDEX slack_inbox_item ON slack_inbox (app, item_key);
CREATE INDEX slack_inbox_lane ON slack_inbox (lane, position, id) WHERE finished_at IS NULL;
CREATE INDEX slack_inbox_due ON slack_inbox (due_at) WHERE finished_at IS NULL;
CREATE INDEX slack_inbox_finished ON slack_inbox (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX slack_inbox_gesture ON slack_inbox (app, gesture) WHERE gesture <> '';
CREATE INDEX slack_inbox_user ON slack_inbox (owner, user_id) WHERE user_id <> '';
CREATE INDEX slack_inbox_session ON slack_inbox (session_id) WHERE session_id IS NOT NULL;

CREATE TABLE slack_threads (
    team        text NOT NULL,
    channel     text NOT NULL,
    thread      text NOT NULL, -- ts of its first message
    enterprise  text NOT NULL DEFAULT '',
    session_id  uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    owner       text NOT NULL,
    mode        text NOT NULL,
    first_seq   bigint NOT NULL DEFAULT 0, -- of messages: those up to it are not posted
    sent_seq    bigint NOT NULL DEFAULT 0, -- of events: what they report was posted
    last_seq    bigint NOT NULL DEFAULT 0, -- of events: the session's newest
    lease_owner text NOT NULL DEFAULT '',
    lease_until timestamptz, -- by the database's clock
    due_at      timestamptz NOT NULL, -- the next attempt, or the end of the lease; likewise
    created_at  timestamptz NOT NULL,
    reason      text NOT NULL DEFAULT '',
    PRIMARY KEY (team, channel, thread)
);
CREATE UNIQUE INDEX slack_threads_session ON slack_threads (session_id);
CREATE INDEX slack_threads_behind ON slack_threads (due_at) WHERE sent_seq < last_seq AND mode IN ('two_way', 'to_slack');
CREATE INDEX slack_threads_leases ON slack_threads (lease_owner) WHERE lease_owner <> '';

CREATE TABLE slack_posts (
    session_id uuid NOT NULL, -- no reference: it would lock the session after the thread
    item_id    uuid NOT NULL, -- a message or an approval
    part       bigint NOT NULL, -- 0, 1, 2 … of a long text
    owner      text NOT NULL,
    kind       text NOT NULL,
    team       text NOT NULL,
    channel    text NOT NULL,
    thread     text NOT NULL,
    ts         text NOT NULL DEFAULT '', -- Slack's id in the channel; empty until it is known
    state      text NOT NULL,
    streaming  boolean NOT NULL DEFAULT false,
    off_path   boolean NOT NULL DEFAULT false, -- marked in Slack as not on the current path
    text_from  bigint NOT NULL DEFAULT 0, -- bytes of the message
    text_to    bigint NOT NULL DEFAULT 0,
    hash       text NOT NULL DEFAULT '', -- of what was sent last
    error      text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL,
    PRIMARY KEY (session_id, item_id, part)
);
CREATE UNIQUE INDEX slack_posts_ts ON slack_posts (team, channel, ts) WHERE ts <> '';

CREATE TABLE message_revisions (
    message_id  uuid NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    number      bigint NOT NULL, -- 1, 2, 3 …
    session_id  uuid NOT NULL,
    owner       text NOT NULL,
    content     text NOT NULL,
    token_count bigint NOT NULL DEFAULT 0,
    replaced_at timestamptz NOT NULL,
    PRIMARY KEY (message_id, number)
);
CREATE INDEX message_revisions_session ON message_revisions (session_id);

CREATE TABLE slack_installations (
    team        text PRIMARY KEY, -- id of the workspace, or of the organization, for all of its workspaces
    enterprise  text NOT NULL DEFAULT '',
    name        text NOT NULL DEFAULT '',
    app         text NOT NULL,
    bot_user    text NOT NULL,
    owner       text NOT NULL, -- of the sessions
    scopes      text NOT NULL,
    tokens      bytea, -- sealed; NULL when revoked
    state       text NOT NULL,
    expires_at  timestamptz, -- of the bot token; NULL = never
    lease_until timestamptz, -- while a process rotates the tokens; by the database's clock
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL
);

CREATE TABLE message_vectors (
    message_id uuid PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    session_id uuid NOT NULL,
    owner      text NOT NULL,
    model      text NOT NULL,
    dimension  bigint NOT NULL, -- 0 = the model refused the text
    embedding  bytea -- float32, little endian
);
CREATE INDEX message_vectors_session ON message_vectors (session_id, message_id);

CREATE TABLE message_vector_work (
    id           bigint PRIMARY KEY, -- 1: there is one row
    model        text NOT NULL DEFAULT '',
    dimension    bigint NOT NULL DEFAULT 0,
    worker       text NOT NULL DEFAULT '',
    leased_until timestamptz
);
INSERT INTO message_vector_work (id) VALUES (1);

CREATE TABLE standing_instructions (
    id         uuid PRIMARY KEY,
    session_id uuid NOT NULL,
    owner      text NOT NULL,
    message_id uuid REFERENCES messages (id) ON DELETE CASCADE, -- NULL: added by hand
    seq        bigint NOT NULL, -- of the message; by hand: of the last message at that time
    number     bigint NOT NULL DEFAULT 0, -- within its message: 1, 2, 3 …
    text       text NOT NULL,
    language   text NOT NULL DEFAULT '',
    topic      text NOT NULL DEFAULT '',
    withdraws  boolean NOT NULL DEFAULT false, -- it takes an earlier one back
    amends     boolean NOT NULL DEFAULT false, -- it stands only if it finds an earlier one to change
    created_at timestamptz NOT NULL,
    edited_at  timestamptz, -- NULL: as it was written
    removed_at timestamptz -- NULL: not removed by hand
);
CREATE INDEX standing_instructions_session ON standing_instructions (session_id, seq);
CREATE INDEX standing_instructions_message ON standing_instructions (message_id);

CREATE TABLE prompt_setups (
    session_id    uuid NOT NULL,
    hash          text NOT NULL, -- of the texts
    owner         text NOT NULL,
    system_prompt text NOT NULL,
    tool_usage    text NOT NULL,
    tools         text NOT NULL, -- JSON, byte for byte
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (session_id, hash)
);

ALTER TABLE sessions ADD FOREIGN KEY (summary_through_id) REFERENCES messages (id);
