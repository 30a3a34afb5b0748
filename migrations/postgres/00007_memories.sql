-- Memories: how their vectors were made, and in which order an owner's were written,
-- so that an index in memory learns what it missed (W11).

-- +goose Up
ALTER TABLE memories
    ADD COLUMN dimension bigint NOT NULL DEFAULT 0, -- of embedding; 0 = none
    ADD COLUMN revision  bigint NOT NULL DEFAULT 0; -- number of the last write among the owner's
CREATE INDEX memories_created ON memories (owner, created_at, id);
CREATE INDEX memories_vectors ON memories (owner, embedding_model, dimension, user_id, id);
CREATE INDEX memories_changes ON memories (owner, revision);
CREATE INDEX memories_walk ON memories (owner, id);

CREATE TABLE memory_revisions (
    owner    text PRIMARY KEY,
    revision bigint NOT NULL -- number of the newest write
);

-- Only the newest are kept: who missed more than those reads everything again.
CREATE TABLE memory_deletions (
    owner     text NOT NULL,
    memory_id uuid NOT NULL,
    revision  bigint NOT NULL,
    PRIMARY KEY (owner, memory_id)
);
CREATE INDEX memory_deletions_revision ON memory_deletions (owner, revision);

-- +goose Down
DROP TABLE memory_deletions;
DROP TABLE memory_revisions;
DROP INDEX memories_walk;
DROP INDEX memories_changes;
DROP INDEX memories_vectors;
DROP INDEX memories_created;
ALTER TABLE memories
    DROP COLUMN revision,
    DROP COLUMN dimension;
