-- What a sweep of old events and of archived sessions has to find.

-- +goose Up
CREATE INDEX session_events_age ON session_events (at, session_id, event_seq);
CREATE INDEX sessions_archived ON sessions (archived_at, id) WHERE archived_at IS NOT NULL;

-- +goose Down
DROP INDEX sessions_archived;
DROP INDEX session_events_age;
