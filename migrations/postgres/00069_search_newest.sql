-- The newest messages of an owner are read without the titles of sessions: those of imported
-- conversations are all newer than the messages.

-- +goose Up
DROP INDEX search_entries_newest;
CREATE INDEX search_entries_newest ON search_entries (owner, created_at, n) WHERE message_id IS NOT NULL;

-- +goose Down
DROP INDEX search_entries_newest;
CREATE INDEX search_entries_newest ON search_entries (owner, created_at, n);
