-- System prompts and tools to which thoughts of sessions are bound.

-- +goose Up
CREATE TABLE prompt_setups (
    session_id    TEXT NOT NULL,
    hash          TEXT NOT NULL, -- of the texts
    owner         TEXT NOT NULL,
    system_prompt TEXT NOT NULL,
    tool_usage    TEXT NOT NULL,
    tools         TEXT NOT NULL, -- JSON, byte for byte
    created_at    DATETIME NOT NULL,
    PRIMARY KEY (session_id, hash)
);

-- +goose Down
DROP TABLE prompt_setups;
