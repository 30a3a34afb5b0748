-- Messages that a content filter refused before there was a mark get it. Of several in a row the first is meant: the
-- others were sent together with it.

-- +goose Up
UPDATE messages SET finish_reason = 'content_filter'
WHERE role = 'user' AND finish_reason = '' AND revised_at IS NULL AND id IN (
    SELECT user_message_id FROM runs
    WHERE status = 'failed' AND error ->> 'code' = 'model_content_filter' AND (
        SELECT p.error ->> 'code' FROM runs p WHERE p.session_id = runs.session_id AND p.queue_seq < runs.queue_seq
        ORDER BY p.queue_seq DESC LIMIT 1) IS DISTINCT FROM 'model_content_filter');
