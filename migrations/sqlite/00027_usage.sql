-- Model calls added up as they are recorded: by day, and for each session.

-- +goose Up
-- A call is added to up to four rows, one of each level: what all calls of the owner came
-- to (all), those of a user (user), of a session (session), and of a user in a session
-- (user_session). Rows of levels without session to which many sessions add are split into
-- shards, so that these do not wait for each other.
CREATE TABLE usage_days (
    owner              TEXT NOT NULL,
    level              TEXT NOT NULL,
    user_id            TEXT NOT NULL, -- empty where the level has none, and of calls without one
    session_id         TEXT NOT NULL, -- likewise, and of sessions that were purged
    day                TEXT NOT NULL, -- of UTC: 2026-01-31
    agent              TEXT NOT NULL, -- empty of levels with a session
    model              TEXT NOT NULL, -- likewise
    shard              INTEGER NOT NULL,
    calls              INTEGER NOT NULL,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    cost_micro_usd     INTEGER NOT NULL,
    unpriced_calls     INTEGER NOT NULL,
    spent_tokens       INTEGER NOT NULL, -- that count against a limit
    PRIMARY KEY (owner, level, user_id, session_id, day, agent, model, shard)
);
INSERT INTO usage_days
SELECT owner, level, CASE WHEN level IN ('user', 'user_session') THEN user_id ELSE '' END,
    CASE WHEN level IN ('session', 'user_session') THEN COALESCE(CAST(session_id AS TEXT), '') ELSE '' END, substr(created_at, 1, 10),
    CASE WHEN level IN ('all', 'user') THEN agent ELSE '' END, CASE WHEN level IN ('all', 'user') THEN model ELSE '' END, 0,
    COUNT(*), SUM(input_tokens), SUM(output_tokens), SUM(reasoning_tokens), SUM(cache_read_tokens), SUM(cache_write_tokens),
    COALESCE(SUM(cost_micro_usd), 0),
    SUM(CASE WHEN cost_micro_usd IS NULL AND (error IN ('', 'canceled') OR input_tokens > 0) THEN 1 ELSE 0 END),
    SUM(CASE WHEN input_tokens + output_tokens > 0 THEN input_tokens + output_tokens WHEN error IN ('', 'canceled') THEN estimated_tokens ELSE 0 END)
FROM model_calls CROSS JOIN (SELECT 'all' AS level UNION ALL SELECT 'user' UNION ALL SELECT 'session' UNION ALL SELECT 'user_session') AS levels
WHERE level <> 'user_session' OR user_id <> ''
GROUP BY 1, 2, 3, 4, 5, 6, 7;

ALTER TABLE sessions ADD COLUMN usage_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN usage_input_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN usage_output_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN usage_reasoning_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN usage_cache_read_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN usage_cache_write_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN usage_cost_micro_usd INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN usage_unpriced_calls INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET usage_calls = c.calls, usage_input_tokens = c.input_tokens, usage_output_tokens = c.output_tokens,
    usage_reasoning_tokens = c.reasoning_tokens, usage_cache_read_tokens = c.cache_read_tokens,
    usage_cache_write_tokens = c.cache_write_tokens, usage_cost_micro_usd = c.cost_micro_usd, usage_unpriced_calls = c.unpriced_calls
FROM (SELECT session_id, COUNT(*) AS calls, SUM(input_tokens) AS input_tokens, SUM(output_tokens) AS output_tokens,
        SUM(reasoning_tokens) AS reasoning_tokens, SUM(cache_read_tokens) AS cache_read_tokens,
        SUM(cache_write_tokens) AS cache_write_tokens, COALESCE(SUM(cost_micro_usd), 0) AS cost_micro_usd,
        SUM(CASE WHEN cost_micro_usd IS NULL AND (error IN ('', 'canceled') OR input_tokens > 0) THEN 1 ELSE 0 END) AS unpriced_calls
    FROM model_calls WHERE session_id IS NOT NULL GROUP BY session_id) c
WHERE c.session_id = sessions.id;

DROP INDEX model_calls_spent;
CREATE INDEX model_calls_time ON model_calls (owner, created_at);

-- +goose Down
DROP INDEX model_calls_time;
CREATE INDEX model_calls_spent ON model_calls (owner, created_at, input_tokens, output_tokens, estimated_tokens, cost_micro_usd, error);
ALTER TABLE sessions DROP COLUMN usage_unpriced_calls;
ALTER TABLE sessions DROP COLUMN usage_cost_micro_usd;
ALTER TABLE sessions DROP COLUMN usage_cache_write_tokens;
ALTER TABLE sessions DROP COLUMN usage_cache_read_tokens;
ALTER TABLE sessions DROP COLUMN usage_reasoning_tokens;
ALTER TABLE sessions DROP COLUMN usage_output_tokens;
ALTER TABLE sessions DROP COLUMN usage_input_tokens;
ALTER TABLE sessions DROP COLUMN usage_calls;
DROP TABLE usage_days;
