-- Vectors of messages, for searches by meaning. They are made in the background, session by
-- session in the order of the log, by one process at a time.

-- +goose Up
CREATE TABLE message_vectors (
    message_id uuid PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    session_id uuid NOT NULL,
    owner      text NOT NULL,
    model      text NOT NULL,   -- '' = to be made anew: the message was edited
    dimension  bigint NOT NULL, -- 0 = the model refused the text
    embedding  bytea            -- float32, little endian
);
CREATE INDEX message_vectors_session ON message_vectors (session_id);
CREATE INDEX message_vectors_edited ON message_vectors (message_id) WHERE model = '';
CREATE TABLE message_vector_sessions (
    session_id  uuid PRIMARY KEY,
    owner       text NOT NULL,
    model       text NOT NULL,
    through_seq bigint NOT NULL -- messages up to this one have their vectors
);
CREATE TABLE message_vector_work (
    id           bigint PRIMARY KEY, -- 1: there is one row
    model        text NOT NULL DEFAULT '',
    dimension    bigint NOT NULL DEFAULT 0,
    through_at   timestamptz, -- sessions without a change since then have their vectors; NULL = look at all
    worker       text NOT NULL DEFAULT '',
    leased_until timestamptz
);
INSERT INTO message_vector_work (id) VALUES (1);

-- +goose Down
DROP TABLE message_vector_work;
DROP TABLE message_vector_sessions;
DROP TABLE message_vectors;
