-- The names by which surfaces know sessions, such as a thread of Slack.

-- +goose Up
CREATE TABLE session_aliases (
    owner      TEXT NOT NULL,
    surface    TEXT NOT NULL,
    alias      TEXT NOT NULL,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (owner, surface, alias)
);
CREATE INDEX session_aliases_session ON session_aliases (session_id);

-- +goose Down
DROP TABLE session_aliases;
