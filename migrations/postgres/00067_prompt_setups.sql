-- System prompts and tools to which thoughts of sessions are bound.

-- +goose Up
CREATE TABLE prompt_setups (
    session_id    uuid NOT NULL,
    hash          text NOT NULL, -- of the texts
    owner         text NOT NULL,
    system_prompt text NOT NULL,
    tool_usage    text NOT NULL,
    tools         text NOT NULL, -- JSON, byte for byte
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (session_id, hash)
);

-- +goose Down
DROP TABLE prompt_setups;
