-- What ended attempts of a run from outside: processes that died while they executed it,
-- and times that it was given back because the database could not be reached.

-- +goose Up
ALTER TABLE runs ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN give_backs INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE runs DROP COLUMN give_backs;
ALTER TABLE runs DROP COLUMN deaths;
