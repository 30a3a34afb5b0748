-- The text that was read out of documents, once for each content, and what blobs and lists
-- of blobs say of it.

-- +goose Up
CREATE TABLE blob_texts (
    owner       TEXT NOT NULL,
    sha256      TEXT NOT NULL,
    pages       INTEGER NOT NULL DEFAULT 0,
    blank_pages INTEGER NOT NULL DEFAULT 0, -- of these: without text
    created_at  DATETIME NOT NULL,
    text        TEXT NOT NULL,
    PRIMARY KEY (owner, sha256),
    FOREIGN KEY (owner, sha256) REFERENCES blob_contents (owner, sha256) ON DELETE CASCADE
);
ALTER TABLE blobs ADD COLUMN pages INTEGER NOT NULL DEFAULT 0;
ALTER TABLE blobs ADD COLUMN blank_pages INTEGER NOT NULL DEFAULT 0;
ALTER TABLE blobs ADD COLUMN extracted BOOLEAN NOT NULL DEFAULT false; -- there is a row in blob_texts

-- What links to files are signed with; all processes have the same one.
CREATE TABLE signing_keys (
    purpose    TEXT NOT NULL PRIMARY KEY,
    created_at DATETIME NOT NULL,
    secret     BLOB NOT NULL
);
CREATE INDEX blobs_listed ON blobs (owner, created_at, id);

-- +goose Down
DROP TABLE signing_keys;
DROP INDEX blobs_listed;
ALTER TABLE blobs DROP COLUMN extracted;
ALTER TABLE blobs DROP COLUMN blank_pages;
ALTER TABLE blobs DROP COLUMN pages;
DROP TABLE blob_texts;
