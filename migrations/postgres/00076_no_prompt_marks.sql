-- Prompts are not compared with those before them any more.

-- +goose Up
ALTER TABLE sessions DROP COLUMN prompt_marks;

-- +goose Down
ALTER TABLE sessions ADD COLUMN prompt_marks jsonb; -- NULL: no prompt was sent yet
