-- Names of sessions that clients of /v1 choose are apart from their idempotency keys, and each end
-- user has names of their own. An old name of a user's session may be that of the user's tokens or of
-- an owner's key: both find the session.

-- +goose Up
UPDATE session_aliases SET alias = substr(alias, 10)
WHERE surface = 'api' AND substr(alias, 1, 25) = 'response-idempotency-key:' AND NOT EXISTS (
    SELECT 1 FROM session_aliases k WHERE k.owner = session_aliases.owner AND k.surface = 'api' AND k.alias = substr(session_aliases.alias, 10));
UPDATE session_aliases SET alias = 'name:' || alias
WHERE surface = 'api' AND substr(alias, 1, 16) <> 'idempotency-key:';
INSERT INTO session_aliases (owner, surface, alias, session_id, created_at)
SELECT a.owner, a.surface, 'user/' || char_length(s.user_id) || '/' || s.user_id || '/' || a.alias, a.session_id, a.created_at
FROM session_aliases a JOIN sessions s ON s.id = a.session_id
WHERE a.surface = 'api' AND s.user_id <> '';

-- +goose Down
DELETE FROM session_aliases WHERE surface = 'api' AND substr(alias, 1, 5) = 'user/';
UPDATE session_aliases SET alias = substr(alias, 6) WHERE surface = 'api' AND substr(alias, 1, 5) = 'name:';
