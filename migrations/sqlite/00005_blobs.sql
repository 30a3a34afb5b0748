-- Uploaded images and files: the content once for each owner, what it was called
-- and who brought it beside that, and which messages refer to it. Nothing wrote to
-- the table that was there before.

-- +goose Up
DROP TABLE blobs;

CREATE TABLE blob_contents (
    owner      TEXT NOT NULL,
    sha256     TEXT NOT NULL,
    size       INTEGER NOT NULL,
    created_at DATETIME NOT NULL,
    data       BLOB NOT NULL, -- last: the others are read without it
    PRIMARY KEY (owner, sha256)
);

CREATE TABLE blobs (
    id          TEXT NOT NULL PRIMARY KEY,
    owner       TEXT NOT NULL,
    user_id     TEXT NOT NULL DEFAULT '',
    session_id  TEXT, -- for which it was uploaded, if for one only
    sha256      TEXT NOT NULL,
    media_type  TEXT NOT NULL,
    name        TEXT NOT NULL,
    size        INTEGER NOT NULL,
    width       INTEGER NOT NULL DEFAULT 0,
    height      INTEGER NOT NULL DEFAULT 0,
    token_count INTEGER NOT NULL DEFAULT 0,
    created_at  DATETIME NOT NULL,
    uploaded_at DATETIME NOT NULL, -- last; a sweep counts from here
    FOREIGN KEY (owner, sha256) REFERENCES blob_contents (owner, sha256)
);
CREATE UNIQUE INDEX blobs_same ON blobs (owner, user_id, sha256, name);
CREATE INDEX blobs_content ON blobs (owner, sha256);
CREATE INDEX blobs_session ON blobs (session_id);
CREATE INDEX blobs_uploaded ON blobs (uploaded_at);

-- From the moment in which a message is accepted, when it is not in the log yet.
CREATE TABLE blob_references (
    message_id TEXT NOT NULL,
    blob_id    TEXT NOT NULL REFERENCES blobs (id),
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    owner      TEXT NOT NULL,
    PRIMARY KEY (message_id, blob_id)
);
CREATE INDEX blob_references_blob ON blob_references (blob_id);
CREATE INDEX blob_references_session ON blob_references (session_id);

-- +goose Down
DROP TABLE blob_references;
DROP TABLE blobs;
DROP TABLE blob_contents;
CREATE TABLE blobs (
    id         TEXT NOT NULL PRIMARY KEY,
    owner      TEXT NOT NULL,
    session_id TEXT,
    media_type TEXT NOT NULL,
    name       TEXT NOT NULL DEFAULT '',
    size       INTEGER NOT NULL,
    sha256     text NOT NULL,
    data       BLOB NOT NULL,
    created_at DATETIME NOT NULL
);
CREATE INDEX blobs_session ON blobs (session_id);
