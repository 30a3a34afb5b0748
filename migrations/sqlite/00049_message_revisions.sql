-- What messages said before they were edited in place.

-- +goose Up
ALTER TABLE messages ADD COLUMN revised_at DATETIME; -- NULL: never
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

-- +goose Down
DROP TABLE message_revisions;
ALTER TABLE messages DROP COLUMN revised_at;
