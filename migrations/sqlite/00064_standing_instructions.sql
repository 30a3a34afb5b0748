-- What users set for whole conversations: recognized in their messages, or added by hand.

-- +goose Up
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
    removed_at DATETIME  -- NULL: not removed by hand
);
CREATE INDEX standing_instructions_session ON standing_instructions (session_id, seq);
CREATE INDEX standing_instructions_message ON standing_instructions (message_id);
ALTER TABLE sessions ADD COLUMN standing_count INTEGER NOT NULL DEFAULT 0; -- rows of standing_instructions

-- +goose Down
ALTER TABLE sessions DROP COLUMN standing_count;
DROP TABLE standing_instructions;
