-- What is searched: the words of every message, and of the titles of sessions,
-- as app/core/searchtext gives them.

-- +goose Up
-- n grows with the time of the message: its millisecond, and 20 bits for those
-- of the same one, in the order in which they came. So the newest entries are the
-- last rows of the index, and a search ends as soon as it has enough of them.
CREATE TABLE search_entries (
    n          INTEGER NOT NULL PRIMARY KEY,
    owner      TEXT NOT NULL,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    message_id TEXT REFERENCES messages (id) ON DELETE CASCADE, -- NULL: the session's title
    created_at DATETIME NOT NULL -- to the millisecond
);
CREATE UNIQUE INDEX search_entries_message ON search_entries (message_id);
CREATE INDEX search_entries_session ON search_entries (session_id, created_at, n);

-- The words come in their final form, divided by blanks. Only the index of them is
-- kept, by the n of their entry.
CREATE VIRTUAL TABLE search_words USING fts5 (
    words, parts, scope,
    content = '', contentless_delete = 1, tokenize = "ascii tokenchars '_'"
);

-- An entry and its words are written by one statement. Base is the n of the first
-- entry of a millisecond.
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
-- +goose StatementBegin
CREATE TRIGGER search_entries_delete AFTER DELETE ON search_entries BEGIN
    DELETE FROM search_words WHERE rowid = old.n;
END;
-- +goose StatementEnd

-- What was there before is indexed in the background; a row is gone when its part
-- is done.
CREATE TABLE search_fill (
    part    TEXT NOT NULL PRIMARY KEY, -- titles, messages
    through TEXT NOT NULL            -- the last one done
);
INSERT INTO search_fill
    SELECT column1, '00000000-0000-0000-0000-000000000000' FROM (VALUES ('titles'), ('messages'))
    WHERE EXISTS (SELECT 1 FROM sessions);

-- +goose Down
DROP TABLE search_fill;
DROP VIEW search_new;
DROP TABLE search_words;
DROP TABLE search_entries;
