-- The first messages of a session: more than one when the first was edited.

-- +goose Up
CREATE INDEX messages_roots ON messages (session_id, seq) WHERE parent_id IS NULL;

-- +goose Down
DROP INDEX messages_roots;
