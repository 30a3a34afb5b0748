-- Remarks that may change or withdraw a standing instruction, and stand beside it.

-- +goose Up
ALTER TABLE standing_instructions ADD COLUMN remark BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
DELETE FROM standing_instructions WHERE remark;
ALTER TABLE standing_instructions DROP COLUMN remark;
