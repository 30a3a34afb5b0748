-- Lists of pinned sessions. These are few, so that archived and other ones share the indexes.

-- +goose Up
CREATE INDEX sessions_pinned ON sessions (owner, updated_at, id) WHERE pinned;
CREATE INDEX sessions_user_pinned ON sessions (owner, user_id, updated_at, id) WHERE pinned;

-- +goose Down
DROP INDEX sessions_user_pinned;
DROP INDEX sessions_pinned;
