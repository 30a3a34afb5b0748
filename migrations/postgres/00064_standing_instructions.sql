-- What users set for whole conversations: recognized in their messages, or added by hand.

-- +goose Up
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
    withdraws  boolean NOT NULL DEFAULT FALSE, -- it takes an earlier one back
    amends     boolean NOT NULL DEFAULT FALSE, -- it stands only if it finds an earlier one to change
    created_at timestamptz NOT NULL,
    edited_at  timestamptz, -- NULL: as it was written
    removed_at timestamptz  -- NULL: not removed by hand
);
CREATE INDEX standing_instructions_session ON standing_instructions (session_id, seq);
CREATE INDEX standing_instructions_message ON standing_instructions (message_id);
ALTER TABLE sessions ADD COLUMN standing_count bigint NOT NULL DEFAULT 0; -- rows of standing_instructions

-- +goose Down
ALTER TABLE sessions DROP COLUMN standing_count;
DROP TABLE standing_instructions;
