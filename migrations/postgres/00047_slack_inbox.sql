-- What Slack sent: stored before it is acknowledged, and known for a while after it is done.

-- +goose Up
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

-- +goose Down
DROP TABLE slack_inbox;
