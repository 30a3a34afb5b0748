-- The webhooks of runs whose message and session have none.

-- +goose Up
CREATE TABLE owner_webhooks (
    owner      TEXT NOT NULL PRIMARY KEY,
    url        TEXT NOT NULL,
    secret     TEXT NOT NULL DEFAULT '',
    updated_at DATETIME NOT NULL
);

-- +goose Down
DROP TABLE owner_webhooks;
