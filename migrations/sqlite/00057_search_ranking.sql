-- What the ranking of a search counts. Entries of older versions have no terms; they are
-- replaced in the background.

-- +goose Up
ALTER TABLE search_entries ADD COLUMN seq INTEGER NOT NULL DEFAULT 0; -- of the message
ALTER TABLE search_entries ADD COLUMN on_path BOOLEAN NOT NULL DEFAULT true;
ALTER TABLE search_entries ADD COLUMN length INTEGER NOT NULL DEFAULT 0;
ALTER TABLE search_entries ADD COLUMN terms BLOB;
CREATE INDEX search_entries_seq ON search_entries (session_id, seq);
DROP VIEW search_new;
CREATE VIEW search_new AS
    SELECT n AS base, owner, session_id, message_id, created_at, seq, on_path, length, terms, '' AS words, '' AS parts, '' AS scope FROM search_entries;
-- +goose StatementBegin
CREATE TRIGGER search_new_insert INSTEAD OF INSERT ON search_new BEGIN
    INSERT INTO search_entries (n, owner, session_id, message_id, created_at, seq, on_path, length, terms)
    VALUES (
        (SELECT COALESCE(MAX(n) + 1, new.base) FROM search_entries WHERE n >= new.base AND n < new.base + 1048576),
        new.owner, new.session_id, new.message_id, new.created_at, new.seq, new.on_path, new.length, new.terms
    );
    INSERT INTO search_words (rowid, words, parts, scope) VALUES (last_insert_rowid(), new.words, new.parts, new.scope);
END;
-- +goose StatementEnd
DELETE FROM search_fill;
INSERT INTO search_fill
    SELECT column1, '00000000-0000-0000-0000-000000000000' FROM (VALUES ('titles'), ('messages'))
    WHERE EXISTS (SELECT 1 FROM sessions);

-- +goose Down
DROP VIEW search_new;
DROP INDEX search_entries_seq;
ALTER TABLE search_entries DROP COLUMN terms;
ALTER TABLE search_entries DROP COLUMN length;
ALTER TABLE search_entries DROP COLUMN on_path;
ALTER TABLE search_entries DROP COLUMN seq;
CREATE VIEW search_new AS
    SELECT n AS base, owner, session_id, message_id, created_at, '' AS words, '' AS parts, '' AS scope FROM search_entries;
-- +goose StatementBegin
CREATE TRIGGER search_new_insert INSTEAD OF INSERT ON search_new BEGIN
    INSERT INTO search_entries (n, owner, session_id, message_id, created_at)
    VALUES (
        (SELECT COALESCE(MAX(n) + 1, new.base) FROM search_entries WHERE n >= new.base AND n < new.base + 1048576),
        new.owner, new.session_id, new.message_id, new.created_at
    );
    INSERT INTO search_words (rowid, words, parts, scope) VALUES (last_insert_rowid(), new.words, new.parts, new.scope);
END;
-- +goose StatementEnd
