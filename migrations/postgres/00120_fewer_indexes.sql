-- A write of a turn touches fewer indexes, and its context report is compressed.

-- +goose Up
DROP INDEX messages_path; -- messages_seq finds the same
DROP INDEX search_entries_seq; -- by the messages
ALTER TABLE runs SET (toast_tuple_target = 256);
ALTER TABLE runs ALTER COLUMN context SET STORAGE MAIN;
