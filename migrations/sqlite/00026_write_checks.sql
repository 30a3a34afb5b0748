-- One row that is written now and then, to know that the database takes writes.

-- +goose Up
CREATE TABLE write_checks (
    id INTEGER NOT NULL PRIMARY KEY,
    checked_at DATETIME
);
INSERT INTO write_checks (id) VALUES (1);

-- +goose Down
DROP TABLE write_checks;
