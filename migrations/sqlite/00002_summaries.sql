-- The summary columns of a session and the versions they came from (W2).

-- +goose Up
ALTER TABLE sessions ADD COLUMN conversation_summary TEXT;
ALTER TABLE sessions ADD COLUMN summary_through_id TEXT REFERENCES messages (id);
ALTER TABLE sessions ADD COLUMN summary_through_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN summary_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN summary_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN summarized_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN summary_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN last_summarized_at DATETIME;
ALTER TABLE sessions ADD COLUMN prompt_state TEXT;
ALTER TABLE sessions ADD COLUMN prompt_revision INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_summary_through ON sessions (summary_through_id) WHERE summary_through_id IS NOT NULL;

CREATE TABLE session_summaries (
    id               TEXT NOT NULL PRIMARY KEY,
    session_id       TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    owner            TEXT NOT NULL,
    version          INTEGER NOT NULL,
    kind             TEXT NOT NULL,
    state            TEXT NOT NULL,
    content          TEXT NOT NULL,
    from_id          TEXT,
    through_id       TEXT,
    from_seq         INTEGER NOT NULL DEFAULT 0,
    through_seq      INTEGER NOT NULL DEFAULT 0,
    messages_covered INTEGER NOT NULL DEFAULT 0,
    messages_added   INTEGER NOT NULL DEFAULT 0,
    tokens_before    INTEGER NOT NULL DEFAULT 0,
    tokens_after     INTEGER NOT NULL DEFAULT 0,
    token_count      INTEGER NOT NULL DEFAULT 0,
    model            TEXT NOT NULL DEFAULT '',
    strategy         TEXT NOT NULL DEFAULT '',
    trigger          TEXT NOT NULL DEFAULT '',
    focus            TEXT NOT NULL DEFAULT '',
    note             TEXT NOT NULL DEFAULT '',
    duration_ns      INTEGER NOT NULL DEFAULT 0,
    created_at       DATETIME NOT NULL
);
CREATE UNIQUE INDEX session_summaries_version ON session_summaries (session_id, version);
CREATE UNIQUE INDEX session_summaries_active ON session_summaries (session_id) WHERE kind = 'rolling' AND state = 'active';

-- +goose Down
DROP TABLE session_summaries;
DROP INDEX sessions_summary_through;
ALTER TABLE sessions DROP COLUMN prompt_revision;
ALTER TABLE sessions DROP COLUMN prompt_state;
ALTER TABLE sessions DROP COLUMN last_summarized_at;
ALTER TABLE sessions DROP COLUMN summary_count;
ALTER TABLE sessions DROP COLUMN summarized_count;
ALTER TABLE sessions DROP COLUMN summary_tokens;
ALTER TABLE sessions DROP COLUMN summary_version;
ALTER TABLE sessions DROP COLUMN summary_through_seq;
ALTER TABLE sessions DROP COLUMN summary_through_id;
ALTER TABLE sessions DROP COLUMN conversation_summary;
