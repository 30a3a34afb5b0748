-- Models whose provider refused messages that add or remove tools.

-- +goose Up
ALTER TABLE model_calibrations ADD COLUMN refuses_tool_changes BOOLEAN NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE model_calibrations DROP COLUMN refuses_tool_changes;
