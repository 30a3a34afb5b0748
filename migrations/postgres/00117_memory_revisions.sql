-- Searches of memories read the vectors: no index in memory follows their changes.

-- +goose Up
DROP TABLE memory_revisions;
DROP TABLE memory_deletions;
DROP INDEX memories_changes;
ALTER TABLE memories DROP COLUMN revision;

-- +goose Down
ALTER TABLE memories ADD COLUMN revision bigint NOT NULL DEFAULT 0;
CREATE INDEX memories_changes ON memories (owner, revision);
CREATE TABLE memory_revisions (
    owner    text PRIMARY KEY,
    revision bigint NOT NULL
);
CREATE TABLE memory_deletions (
    owner     text NOT NULL,
    memory_id uuid NOT NULL,
    revision  bigint NOT NULL,
    PRIMARY KEY (owner, memory_id)
);
CREATE INDEX memory_deletions_revision ON memory_deletions (owner, revision);
