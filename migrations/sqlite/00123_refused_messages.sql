-- Messages that a provider has refused are found without the others of their session.

-- +goose Up
CREATE INDEX messages_refused ON messages (session_id, seq) WHERE role = 'user' AND finish_reason IN ('refused', 'content_filter');
