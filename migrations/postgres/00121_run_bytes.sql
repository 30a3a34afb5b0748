-- Options of runs, and messages that only runs have, count as stored.

-- +goose Up
UPDATE sessions SET stored_bytes = greatest(0, stored_bytes + r.bytes) FROM (
    SELECT session_id, SUM(COALESCE(octet_length(options::text), 0) + CASE WHEN input ->> 'content' = '' AND input -> 'parts' IS NULL THEN 0
        ELSE 512 + octet_length(input ->> 'content') + COALESCE(octet_length((input -> 'parts')::text) + 8, 0) + COALESCE(octet_length((input -> 'metadata')::text), 4) END) AS bytes
    FROM runs GROUP BY session_id) r
WHERE r.session_id = sessions.id AND (r.bytes > 0 OR stored_bytes < 0);
