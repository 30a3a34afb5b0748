-- Answers that a filter cut off are found without the others of their session, too. What they answer, and what a filter refused
-- that something follows, is refused.

-- +goose Up
DROP INDEX messages_refused;
CREATE INDEX messages_refused ON messages (session_id, seq) WHERE finish_reason IN ('refused', 'content_filter');
UPDATE messages SET finish_reason = 'refused'
WHERE role = 'user' AND finish_reason = 'content_filter' AND EXISTS (SELECT 1 FROM messages m WHERE m.parent_id = messages.id AND m.role <> 'user');
UPDATE messages SET finish_reason = 'refused'
WHERE role = 'user' AND revised_at IS NULL AND id IN (
    SELECT (SELECT q.id FROM messages q WHERE q.session_id = m.session_id AND q.seq < m.seq AND q.role = 'user' AND q.on_path ORDER BY q.seq DESC LIMIT 1)
    FROM messages m WHERE m.finish_reason = 'content_filter' AND m.role = 'assistant' AND m.on_path);
