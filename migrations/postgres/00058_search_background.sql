-- Messages are indexed in the background, session by session, through indexed_seq.

-- +goose Up
-- -1: the title, too. Whatever an older version has indexed is indexed again.
ALTER TABLE sessions ADD COLUMN indexed_seq bigint NOT NULL DEFAULT -1;
CREATE INDEX sessions_unindexed ON sessions (updated_at, id) WHERE indexed_seq < last_seq AND NOT temporary;
DROP TABLE search_fill;

-- +goose Down
DROP INDEX sessions_unindexed;
ALTER TABLE sessions DROP COLUMN indexed_seq;
CREATE TABLE search_fill (
    part    text PRIMARY KEY, -- titles, messages
    through uuid NOT NULL   -- the last one done
);
INSERT INTO search_fill
    SELECT part, '00000000-0000-0000-0000-000000000000' FROM (VALUES ('titles'), ('messages')) parts (part)
    WHERE EXISTS (SELECT 1 FROM sessions);
