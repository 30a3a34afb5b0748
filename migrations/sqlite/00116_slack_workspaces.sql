-- The Slack app is installed in workspaces alone, with tokens that do not expire.

-- +goose Up
ALTER TABLE slack_threads DROP COLUMN enterprise;
ALTER TABLE slack_installations DROP COLUMN enterprise;
ALTER TABLE slack_installations DROP COLUMN expires_at;
ALTER TABLE slack_installations DROP COLUMN lease_until;
UPDATE session_aliases SET alias = ltrim(alias, '/') WHERE surface = 'slack';
