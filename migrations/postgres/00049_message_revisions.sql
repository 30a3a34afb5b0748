-- What messages said before they were edited in place.

-- +goose Up
ALTER TABLE messages ADD COLUMN revised_at timestamptz; -- NULL: never
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

-- +goose Down
DROP TABLE message_revisions;
ALTER TABLE messages DROP COLUMN revised_at;
