-- Messages that a provider has refused are found without the others of their session. Those whose answers a filter cut off
-- are among them.

-- +goose Up
UPDATE messages SET finish_reason = 'content_filter'
WHERE role = 'user' AND finish_reason = '' AND id IN (SELECT parent_id FROM messages WHERE role = 'assistant' AND finish_reason = 'content_filter');
CREATE INDEX messages_refused ON messages (session_id, seq) WHERE role = 'user' AND finish_reason IN ('refused', 'content_filter');
