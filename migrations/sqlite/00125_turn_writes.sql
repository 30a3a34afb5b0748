-- Only sessions with a user are found by it; of the events of a run only those by their age that others of it need not follow.

-- +goose Up
DROP INDEX session_events_age;
CREATE INDEX session_events_age ON session_events (at) WHERE run_id IS NULL OR type <> 'message.created' AND type <> 'run.queued' AND type <> 'run.started';
DROP INDEX sessions_user_activity;
CREATE INDEX sessions_user_activity ON sessions (owner, user_id, updated_at, id) WHERE archived_at IS NULL AND NOT temporary AND user_id <> '';
