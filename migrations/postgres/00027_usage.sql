-- Model calls added up as they are recorded: by day, and for each session.

-- +goose Up
-- A call is added to up to four rows, one of each level: what all calls of the owner came
-- to (all), those of a user (user), of a session (session), and of a user in a session
-- (user_session). Rows of levels without session to which many sessions add are split into
-- shards, so that these do not wait for each other.
CREATE TABLE usage_days (
    owner              text NOT NULL,
    level              text NOT NULL,
    user_id            text COLLATE "C" NOT NULL, -- empty where the level has none, and of calls without one
    session_id         text COLLATE "C" NOT NULL, -- likewise, and of sessions that were purged
    day                text NOT NULL, -- of UTC: 2026-01-31
    agent              text COLLATE "C" NOT NULL, -- empty of levels with a session
    model              text COLLATE "C" NOT NULL, -- likewise
    shard              bigint NOT NULL,
    calls              bigint NOT NULL,
    input_tokens       bigint NOT NULL,
    output_tokens      bigint NOT NULL,
    reasoning_tokens   bigint NOT NULL,
    cache_read_tokens  bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    cost_micro_usd     bigint NOT NULL,
    unpriced_calls     bigint NOT NULL,
    spent_tokens       bigint NOT NULL, -- that count against a limit
    PRIMARY KEY (owner, level, user_id, session_id, day, agent, model, shard)
);
INSERT INTO usage_days
SELECT owner, level, CASE WHEN level IN ('user', 'user_session') THEN user_id ELSE '' END,
    CASE WHEN level IN ('session', 'user_session') THEN COALESCE(CAST(session_id AS text), '') ELSE '' END, to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD'),
    CASE WHEN level IN ('all', 'user') THEN agent ELSE '' END, CASE WHEN level IN ('all', 'user') THEN model ELSE '' END, 0,
    COUNT(*), SUM(input_tokens), SUM(output_tokens), SUM(reasoning_tokens), SUM(cache_read_tokens), SUM(cache_write_tokens),
    COALESCE(SUM(cost_micro_usd), 0),
    SUM(CASE WHEN cost_micro_usd IS NULL AND (error IN ('', 'canceled') OR input_tokens > 0) THEN 1 ELSE 0 END),
    SUM(CASE WHEN input_tokens + output_tokens > 0 THEN input_tokens + output_tokens WHEN error IN ('', 'canceled') THEN estimated_tokens ELSE 0 END)
FROM model_calls CROSS JOIN (VALUES ('all'), ('user'), ('session'), ('user_session')) AS levels (level)
WHERE level <> 'user_session' OR user_id <> ''
GROUP BY 1, 2, 3, 4, 5, 6, 7;

ALTER TABLE sessions
    ADD COLUMN usage_calls              bigint NOT NULL DEFAULT 0,
    ADD COLUMN usage_input_tokens       bigint NOT NULL DEFAULT 0,
    ADD COLUMN usage_output_tokens      bigint NOT NULL DEFAULT 0,
    ADD COLUMN usage_reasoning_tokens   bigint NOT NULL DEFAULT 0,
    ADD COLUMN usage_cache_read_tokens  bigint NOT NULL DEFAULT 0,
    ADD COLUMN usage_cache_write_tokens bigint NOT NULL DEFAULT 0,
    ADD COLUMN usage_cost_micro_usd     bigint NOT NULL DEFAULT 0,
    ADD COLUMN usage_unpriced_calls     bigint NOT NULL DEFAULT 0;
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
ALTER TABLE sessions
    DROP COLUMN usage_unpriced_calls,
    DROP COLUMN usage_cost_micro_usd,
    DROP COLUMN usage_cache_write_tokens,
    DROP COLUMN usage_cache_read_tokens,
    DROP COLUMN usage_reasoning_tokens,
    DROP COLUMN usage_output_tokens,
    DROP COLUMN usage_input_tokens,
    DROP COLUMN usage_calls;
DROP TABLE usage_days;
