-- The text that was read out of documents, once for each content, and what blobs and lists
-- of blobs say of it.

-- +goose Up
CREATE TABLE blob_texts (
    owner       text NOT NULL,
    sha256      text NOT NULL,
    pages       bigint NOT NULL DEFAULT 0,
    blank_pages bigint NOT NULL DEFAULT 0, -- of these: without text
    created_at  timestamptz NOT NULL,
    text        text NOT NULL,
    PRIMARY KEY (owner, sha256),
    FOREIGN KEY (owner, sha256) REFERENCES blob_contents (owner, sha256) ON DELETE CASCADE
);
ALTER TABLE blobs ADD COLUMN pages bigint NOT NULL DEFAULT 0;
ALTER TABLE blobs ADD COLUMN blank_pages bigint NOT NULL DEFAULT 0;
ALTER TABLE blobs ADD COLUMN extracted boolean NOT NULL DEFAULT false; -- there is a row in blob_texts

-- What links to files are signed with; all processes have the same one.
CREATE TABLE signing_keys (
    purpose    text NOT NULL PRIMARY KEY,
    created_at timestamptz NOT NULL,
    secret     bytea NOT NULL
);
CREATE INDEX blobs_listed ON blobs (owner, created_at, id);

-- +goose Down
DROP TABLE signing_keys;
DROP INDEX blobs_listed;
ALTER TABLE blobs DROP COLUMN extracted;
ALTER TABLE blobs DROP COLUMN blank_pages;
ALTER TABLE blobs DROP COLUMN pages;
DROP TABLE blob_texts;
