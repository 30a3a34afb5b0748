-- The window that a provider told when it refused a prompt as too long.

-- +goose Up
ALTER TABLE model_calibrations
    ADD COLUMN told_window bigint NOT NULL DEFAULT 0, -- tokens; 0 = none
    ADD COLUMN told_at     timestamptz;

-- +goose Down
ALTER TABLE model_calibrations
    DROP COLUMN told_at,
    DROP COLUMN told_window;
