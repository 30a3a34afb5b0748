-- The bytes of a session's messages, for the limit of what is stored.

-- +goose Up
ALTER TABLE sessions ADD COLUMN stored_bytes BIGINT NOT NULL DEFAULT 0;
UPDATE sessions SET stored_bytes = COALESCE((SELECT SUM(512 + octet_length(content) + COALESCE(octet_length(parts::text), 0)
	+ COALESCE(octet_length(tool_calls::text), 0) + COALESCE(octet_length(metadata::text), 0)
	+ COALESCE(CASE WHEN revised_at IS NOT NULL THEN (SELECT SUM(octet_length(r.content)) FROM message_revisions r WHERE r.message_id = messages.id) END, 0))
	FROM messages WHERE session_id = sessions.id), 0);

-- +goose Down
ALTER TABLE sessions DROP COLUMN stored_bytes;
