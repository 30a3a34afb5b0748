-- What is searched: the words of every message, and of the titles of sessions,
-- as app/core/searchtext gives them.

-- +goose Up
CREATE TABLE search_entries (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner      text NOT NULL,
    session_id uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    message_id uuid REFERENCES messages (id) ON DELETE CASCADE, -- NULL: the session's title
    created_at timestamptz NOT NULL, -- to the millisecond
    words      tsvector NOT NULL
);
CREATE UNIQUE INDEX search_entries_message ON search_entries (message_id);
CREATE INDEX search_entries_session ON search_entries (session_id, created_at, n);
CREATE INDEX search_entries_newest ON search_entries (owner, created_at, n);
-- Without fastupdate: a list of pending entries would have to be read by every
-- search, and emptied by an unlucky writer.
CREATE INDEX search_entries_words ON search_entries USING gin (words) WITH (fastupdate = off);

-- What was there before is indexed in the background; a row is gone when its part
-- is done.
CREATE TABLE search_fill (
    part    text PRIMARY KEY, -- titles, messages
    through uuid NOT NULL   -- the last one done
);
INSERT INTO search_fill
    SELECT part, '00000000-0000-0000-0000-000000000000' FROM (VALUES ('titles'), ('messages')) parts (part)
    WHERE EXISTS (SELECT 1 FROM sessions);

-- +goose Down
DROP TABLE search_fill;
DROP TABLE search_entries;
