-- The summary columns of a session and the versions they came from (W2).

-- +goose Up
ALTER TABLE sessions
    ADD COLUMN conversation_summary text,
    ADD COLUMN summary_through_id   uuid REFERENCES messages (id),
    ADD COLUMN summary_through_seq  bigint NOT NULL DEFAULT 0,
    ADD COLUMN summary_version      bigint NOT NULL DEFAULT 0,
    ADD COLUMN summary_tokens       bigint NOT NULL DEFAULT 0,
    ADD COLUMN summarized_count     bigint NOT NULL DEFAULT 0,
    ADD COLUMN summary_count        bigint NOT NULL DEFAULT 0,
    ADD COLUMN last_summarized_at   timestamptz,
    ADD COLUMN prompt_state         jsonb,
    ADD COLUMN prompt_revision      bigint NOT NULL DEFAULT 0;
CREATE INDEX sessions_summary_through ON sessions (summary_through_id) WHERE summary_through_id IS NOT NULL;

CREATE TABLE session_summaries (
    id               uuid PRIMARY KEY,
    session_id       uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    owner            text NOT NULL,
    version          bigint NOT NULL,
    kind             text NOT NULL,
    state            text NOT NULL,
    content          text NOT NULL,
    from_id          uuid,
    through_id       uuid,
    from_seq         bigint NOT NULL DEFAULT 0,
    through_seq      bigint NOT NULL DEFAULT 0,
    messages_covered bigint NOT NULL DEFAULT 0,
    messages_added   bigint NOT NULL DEFAULT 0,
    tokens_before    bigint NOT NULL DEFAULT 0,
    tokens_after     bigint NOT NULL DEFAULT 0,
    token_count      bigint NOT NULL DEFAULT 0,
    model            text NOT NULL DEFAULT '',
    strategy         text NOT NULL DEFAULT '',
    trigger          text NOT NULL DEFAULT '',
    focus            text NOT NULL DEFAULT '',
    note             text NOT NULL DEFAULT '',
    duration_ns      bigint NOT NULL DEFAULT 0,
    created_at       timestamptz NOT NULL
);
CREATE UNIQUE INDEX session_summaries_version ON session_summaries (session_id, version);
CREATE UNIQUE INDEX session_summaries_active ON session_summaries (session_id) WHERE kind = 'rolling' AND state = 'active';

-- +goose Down
DROP TABLE session_summaries;
DROP INDEX sessions_summary_through;
ALTER TABLE sessions
    DROP COLUMN prompt_revision,
    DROP COLUMN prompt_state,
    DROP COLUMN last_summarized_at,
    DROP COLUMN summary_count,
    DROP COLUMN summarized_count,
    DROP COLUMN summary_tokens,
    DROP COLUMN summary_version,
    DROP COLUMN summary_through_seq,
    DROP COLUMN summary_through_id,
    DROP COLUMN conversation_summary;
