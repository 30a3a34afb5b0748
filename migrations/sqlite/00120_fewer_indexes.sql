-- A write of a turn touches fewer and smaller indexes.

-- +goose Up
DROP INDEX messages_path; -- messages_seq finds the same
DROP INDEX search_entries_seq; -- by the messages
DROP INDEX session_events_age;
CREATE INDEX session_events_age ON session_events (at);
