-- What the ranking of a search counts. Entries of older versions have no terms; they are
-- replaced in the background.

-- +goose Up
ALTER TABLE search_entries ADD COLUMN seq bigint NOT NULL DEFAULT 0; -- of the message
ALTER TABLE search_entries ADD COLUMN on_path boolean NOT NULL DEFAULT true;
ALTER TABLE search_entries ADD COLUMN length bigint NOT NULL DEFAULT 0;
ALTER TABLE search_entries ADD COLUMN terms bytea;
CREATE INDEX search_entries_seq ON search_entries (session_id, seq);
DELETE FROM search_fill;
INSERT INTO search_fill
    SELECT part, '00000000-0000-0000-0000-000000000000' FROM (VALUES ('titles'), ('messages')) parts (part)
    WHERE EXISTS (SELECT 1 FROM sessions);

-- +goose Down
DROP INDEX search_entries_seq;
ALTER TABLE search_entries DROP COLUMN terms;
ALTER TABLE search_entries DROP COLUMN length;
ALTER TABLE search_entries DROP COLUMN on_path;
ALTER TABLE search_entries DROP COLUMN seq;
