-- Answers that a filter cut off are found without the others of their session, too.

-- +goose Up
DROP INDEX messages_refused;
CREATE INDEX messages_refused ON messages (session_id, seq) WHERE finish_reason IN ('refused', 'content_filter');
