-- Searches of memories read the vectors: no index in memory follows their changes.

-- +goose Up
DROP TABLE memory_revisions;
DROP TABLE memory_deletions;
DROP INDEX memories_changes;
ALTER TABLE memories DROP COLUMN revision;

-- +goose Down
ALTER TABLE memories ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
CREATE INDEX memories_changes ON memories (owner, revision);
CREATE TABLE memory_revisions (
    owner    TEXT NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL
);
CREATE TABLE memory_deletions (
    owner     TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    revision  INTEGER NOT NULL,
    PRIMARY KEY (owner, memory_id)
);
CREATE INDEX memory_deletions_revision ON memory_deletions (owner, revision);
