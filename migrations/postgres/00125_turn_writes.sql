-- A turn writes less: reports are stored as they come, what a run has at its end stays on the page of its row, words move into
-- their index in larger parts, only sessions with a user are found by it, and of the events of a run only those by their age
-- that others of it need not follow.

-- +goose Up
ALTER TABLE runs ALTER COLUMN context TYPE json;
ALTER TABLE runs SET (fillfactor = 50); -- of what comes from now on
ALTER INDEX search_entries_words SET (gin_pending_list_limit = 256);
DROP INDEX session_events_age;
CREATE INDEX session_events_age ON session_events (at) WHERE run_id IS NULL OR type <> 'message.created' AND type <> 'run.queued' AND type <> 'run.started';
DROP INDEX sessions_user_activity;
CREATE INDEX sessions_user_activity ON sessions (owner, user_id, updated_at, id) WHERE archived_at IS NULL AND NOT temporary AND user_id <> '';
