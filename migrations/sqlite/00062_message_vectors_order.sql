-- The vectors of a session in the order of its messages: a search reads them without those of others.

-- +goose Up
DROP INDEX message_vectors_session;
CREATE INDEX message_vectors_session ON message_vectors (session_id, message_id);

-- +goose Down
DROP INDEX message_vectors_session;
CREATE INDEX message_vectors_session ON message_vectors (session_id);
