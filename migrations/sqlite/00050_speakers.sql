-- Who wrote a message, and whether prompts say so.

-- +goose Up
ALTER TABLE messages ADD COLUMN author_id TEXT NOT NULL DEFAULT '';     -- the user
ALTER TABLE messages ADD COLUMN named BOOLEAN NOT NULL DEFAULT false; -- prompts show the author's name
ALTER TABLE sessions ADD COLUMN speakers TEXT NOT NULL DEFAULT '';      -- core.AfterSpeaker

-- +goose Down
ALTER TABLE sessions DROP COLUMN speakers;
ALTER TABLE messages DROP COLUMN named;
ALTER TABLE messages DROP COLUMN author_id;
