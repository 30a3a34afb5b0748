-- Who wrote a message, and whether prompts say so.

-- +goose Up
ALTER TABLE messages ADD COLUMN author_id text NOT NULL DEFAULT '';     -- the user
ALTER TABLE messages ADD COLUMN named boolean NOT NULL DEFAULT false; -- prompts show the author's name
ALTER TABLE sessions ADD COLUMN speakers text NOT NULL DEFAULT '';      -- core.AfterSpeaker

-- +goose Down
ALTER TABLE sessions DROP COLUMN speakers;
ALTER TABLE messages DROP COLUMN named;
ALTER TABLE messages DROP COLUMN author_id;
