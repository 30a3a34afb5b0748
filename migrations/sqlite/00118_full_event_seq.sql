-- All events refer to messages: none holds a whole one.

-- +goose Up
ALTER TABLE sessions DROP COLUMN full_event_seq;
