-- Options of runs, and messages that only runs have, count as stored.

-- +goose Up
UPDATE sessions SET stored_bytes = max(0, stored_bytes + COALESCE((
    SELECT SUM(COALESCE(octet_length(options), 0) + CASE WHEN input ->> 'content' = '' AND input -> 'parts' IS NULL THEN 0
        ELSE 512 + octet_length(input ->> 'content') + COALESCE(octet_length(input -> 'parts') + 8, 0) + COALESCE(octet_length(input -> 'metadata'), 4) END)
    FROM runs WHERE runs.session_id = sessions.id), 0));
