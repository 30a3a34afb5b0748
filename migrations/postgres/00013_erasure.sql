-- What a deletion has to find: of which message a title was made, and the copies of a
-- message in forks.

-- +goose Up
ALTER TABLE sessions ADD COLUMN title_message_id uuid; -- the question of which the last title was made that was not set
ALTER TABLE sessions ADD COLUMN title_made boolean NOT NULL DEFAULT false; -- the title is that one
CREATE INDEX messages_origin ON messages (origin_id) WHERE origin_id IS NOT NULL;

-- +goose Down
DROP INDEX messages_origin;
ALTER TABLE sessions DROP COLUMN title_made;
ALTER TABLE sessions DROP COLUMN title_message_id;
