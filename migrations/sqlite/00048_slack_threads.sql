-- Threads of Slack that show sessions, and what was posted there.

-- +goose Up
ALTER TABLE sessions ADD COLUMN slack BOOLEAN NOT NULL DEFAULT false; -- a row of slack_threads is bound to it
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
    lease_until DATETIME,          -- by the database's clock
    due_at      DATETIME NOT NULL, -- the next attempt, or the end of the lease; likewise
    created_at  DATETIME NOT NULL,
    PRIMARY KEY (team, channel, thread)
);
CREATE UNIQUE INDEX slack_threads_session ON slack_threads (session_id);
CREATE INDEX slack_threads_behind ON slack_threads (due_at) WHERE sent_seq < last_seq AND mode IN ('two_way', 'to_slack');
CREATE INDEX slack_threads_leases ON slack_threads (lease_owner) WHERE lease_owner <> '';

CREATE TABLE slack_posts (
    session_id TEXT NOT NULL, -- no reference: it would lock the session after the thread
    item_id    TEXT NOT NULL,   -- a message or an approval
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
    text_from  INTEGER NOT NULL DEFAULT 0,      -- bytes of the message
    text_to    INTEGER NOT NULL DEFAULT 0,
    hash       TEXT NOT NULL DEFAULT '',       -- of what was sent last
    error      TEXT NOT NULL DEFAULT '',
    created_at DATETIME NOT NULL,
    PRIMARY KEY (session_id, item_id, part)
);
CREATE UNIQUE INDEX slack_posts_ts ON slack_posts (team, channel, ts) WHERE ts <> '';

-- +goose Down
DROP TABLE slack_posts;
DROP TABLE slack_threads;
ALTER TABLE sessions DROP COLUMN slack;
