-- The window that a provider told when it refused a prompt as too long.

-- +goose Up
ALTER TABLE model_calibrations ADD COLUMN told_window INTEGER NOT NULL DEFAULT 0; -- tokens; 0 = none
ALTER TABLE model_calibrations ADD COLUMN told_at DATETIME;

-- +goose Down
ALTER TABLE model_calibrations DROP COLUMN told_at;
ALTER TABLE model_calibrations DROP COLUMN told_window;
