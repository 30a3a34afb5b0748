-- The names by which surfaces know sessions, such as a thread of Slack.

-- +goose Up
CREATE TABLE session_aliases (
    owner      text NOT NULL,
    surface    text NOT NULL,
    alias      text NOT NULL,
    session_id uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (owner, surface, alias)
);
CREATE INDEX session_aliases_session ON session_aliases (session_id);

-- +goose Down
DROP TABLE session_aliases;
