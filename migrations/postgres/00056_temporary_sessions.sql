-- Sessions that are in no list and no search, and are removed a day after their last activity.

-- +goose Up
ALTER TABLE sessions ADD COLUMN temporary boolean NOT NULL DEFAULT false;
DROP INDEX sessions_activity;
DROP INDEX sessions_user_activity;
DROP INDEX sessions_agent_activity;
DROP INDEX sessions_created;
CREATE INDEX sessions_activity ON sessions (owner, updated_at, id) WHERE archived_at IS NULL AND NOT temporary;
CREATE INDEX sessions_user_activity ON sessions (owner, user_id, updated_at, id) WHERE archived_at IS NULL AND NOT temporary;
CREATE INDEX sessions_agent_activity ON sessions (owner, agent, updated_at, id) WHERE archived_at IS NULL AND NOT temporary;
CREATE INDEX sessions_created ON sessions (owner, created_at, id) WHERE archived_at IS NULL AND NOT temporary;
CREATE INDEX sessions_temporary ON sessions (updated_at, id) WHERE temporary;
CREATE INDEX sessions_temporary_user ON sessions (owner, user_id, id) WHERE temporary;

-- +goose Down
DROP INDEX sessions_temporary_user;
DROP INDEX sessions_temporary;
DROP INDEX sessions_activity;
DROP INDEX sessions_user_activity;
DROP INDEX sessions_agent_activity;
DROP INDEX sessions_created;
CREATE INDEX sessions_activity ON sessions (owner, updated_at, id) WHERE archived_at IS NULL;
CREATE INDEX sessions_user_activity ON sessions (owner, user_id, updated_at, id) WHERE archived_at IS NULL;
CREATE INDEX sessions_agent_activity ON sessions (owner, agent, updated_at, id) WHERE archived_at IS NULL;
CREATE INDEX sessions_created ON sessions (owner, created_at, id) WHERE archived_at IS NULL;
ALTER TABLE sessions DROP COLUMN temporary;
