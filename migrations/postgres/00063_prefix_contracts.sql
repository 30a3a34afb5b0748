-- What a model does with thoughts behind a changed prompt, as the answers of its provider showed.

-- +goose Up
ALTER TABLE model_calibrations ADD COLUMN contract TEXT NOT NULL DEFAULT ''; -- free, drops, refuses; empty = not known

-- +goose Down
ALTER TABLE model_calibrations DROP COLUMN contract;
