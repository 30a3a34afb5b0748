-- A turn writes less: only sessions with a user are found by it, reports are stored as they come, words move into their index
-- in larger parts, and of the events of a run only those by their age that others of it need not follow.

-- +goose Up
DROP INDEX sessions_user_activity; -- sessions before runs, as turns lock them
CREATE INDEX sessions_user_activity ON sessions (owner, user_id, updated_at, id) WHERE archived_at IS NULL AND NOT temporary AND user_id <> '';
ALTER TABLE runs ALTER COLUMN context TYPE json;
ALTER INDEX search_entries_words SET (gin_pending_list_limit = 256);
DROP INDEX session_events_age;
CREATE INDEX session_events_age ON session_events (at) WHERE run_id IS NULL OR type <> 'message.created' AND type <> 'run.queued' AND type <> 'run.started';
