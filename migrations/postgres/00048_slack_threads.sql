-- Threads of Slack that show sessions, and what was posted there.

-- +goose Up
ALTER TABLE sessions ADD COLUMN slack boolean NOT NULL DEFAULT false; -- a row of slack_threads is bound to it
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
    lease_until timestamptz,          -- by the database's clock
    due_at      timestamptz NOT NULL, -- the next attempt, or the end of the lease; likewise
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (team, channel, thread)
);
CREATE UNIQUE INDEX slack_threads_session ON slack_threads (session_id);
CREATE INDEX slack_threads_behind ON slack_threads (due_at) WHERE sent_seq < last_seq AND mode IN ('two_way', 'to_slack');
CREATE INDEX slack_threads_leases ON slack_threads (lease_owner) WHERE lease_owner <> '';

CREATE TABLE slack_posts (
    session_id uuid NOT NULL, -- no reference: it would lock the session after the thread
    item_id    uuid NOT NULL,   -- a message or an approval
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
    text_from  bigint NOT NULL DEFAULT 0,      -- bytes of the message
    text_to    bigint NOT NULL DEFAULT 0,
    hash       text NOT NULL DEFAULT '',       -- of what was sent last
    error      text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL,
    PRIMARY KEY (session_id, item_id, part)
);
CREATE UNIQUE INDEX slack_posts_ts ON slack_posts (team, channel, ts) WHERE ts <> '';

-- +goose Down
DROP TABLE slack_posts;
DROP TABLE slack_threads;
ALTER TABLE sessions DROP COLUMN slack;
