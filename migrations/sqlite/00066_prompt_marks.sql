-- Short hashes of a session's last prompt: what differs in the next one.

-- +goose Up
ALTER TABLE sessions ADD COLUMN prompt_marks TEXT; -- NULL: no prompt was sent yet

-- +goose Down
ALTER TABLE sessions DROP COLUMN prompt_marks;
