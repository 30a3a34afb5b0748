-- The webhooks of runs whose message and session have none.

-- +goose Up
CREATE TABLE owner_webhooks (
    owner      text PRIMARY KEY,
    url        text NOT NULL,
    secret     text NOT NULL DEFAULT '',
    updated_at timestamptz NOT NULL
);

-- +goose Down
DROP TABLE owner_webhooks;
