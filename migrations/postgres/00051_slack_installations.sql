-- Where the Slack app is installed by OAuth.

-- +goose Up
CREATE TABLE slack_installations (
    team        text NOT NULL PRIMARY KEY, -- id of the workspace, or of the organization, for all of its workspaces
    enterprise  text NOT NULL DEFAULT '',
    name        text NOT NULL DEFAULT '',
    app         text NOT NULL,
    bot_user    text NOT NULL,
    owner       text NOT NULL, -- of the sessions
    scopes      text NOT NULL,
    tokens      bytea,         -- sealed; NULL when revoked
    state       text NOT NULL,
    expires_at  timestamptz,    -- of the bot token; NULL = never
    lease_until timestamptz,    -- while a process rotates the tokens; by the database's clock
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL
);

-- +goose Down
DROP TABLE slack_installations;
