-- What a summary was ordered to cover, of which it may be a part, and how many of its
-- messages its writer saw only in part.

-- +goose Up
ALTER TABLE session_summaries ADD COLUMN ordered_seq bigint NOT NULL DEFAULT 0;
ALTER TABLE session_summaries ADD COLUMN messages_shortened bigint NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE session_summaries DROP COLUMN messages_shortened;
ALTER TABLE session_summaries DROP COLUMN ordered_seq;
