-- Where the Slack app is installed by OAuth.

-- +goose Up
CREATE TABLE slack_installations (
    team        TEXT NOT NULL PRIMARY KEY, -- id of the workspace, or of the organization, for all of its workspaces
    enterprise  TEXT NOT NULL DEFAULT '',
    name        TEXT NOT NULL DEFAULT '',
    app         TEXT NOT NULL,
    bot_user    TEXT NOT NULL,
    owner       TEXT NOT NULL, -- of the sessions
    scopes      TEXT NOT NULL,
    tokens      BLOB,         -- sealed; NULL when revoked
    state       TEXT NOT NULL,
    expires_at  DATETIME,    -- of the bot token; NULL = never
    lease_until DATETIME,    -- while a process rotates the tokens; by the database's clock
    created_at  DATETIME NOT NULL,
    updated_at  DATETIME NOT NULL
);

-- +goose Down
DROP TABLE slack_installations;
