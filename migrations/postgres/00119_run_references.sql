-- Events about runs refer to them: none holds a whole one.

-- +goose Up
UPDATE session_events SET data = CASE WHEN type IN ('run.started', 'run.waiting')
    THEN json_build_object('attempt', data -> 'run' -> 'attempt', 'usage', data -> 'run' -> 'usage', 'bytes', octet_length(CAST(data AS text)))
    ELSE json_build_object('bytes', octet_length(CAST(data AS text))) END
WHERE type IN ('run.started', 'run.waiting', 'run.succeeded', 'run.failed', 'run.canceled');
