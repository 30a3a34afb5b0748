-- A write of a turn touches fewer indexes.

-- +goose Up
DROP INDEX messages_path; -- messages_seq finds the same
DROP INDEX search_entries_seq; -- by the messages
