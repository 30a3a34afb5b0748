-- Nothing stands beside an instruction any more: a remark took the room of instructions in prompts.

-- +goose Up
UPDATE sessions SET standing_count = (SELECT COUNT(*) FROM standing_instructions WHERE session_id = sessions.id AND NOT remark)
WHERE id IN (SELECT session_id FROM standing_instructions WHERE remark);
DELETE FROM standing_instructions WHERE remark;
ALTER TABLE standing_instructions DROP COLUMN remark;

-- +goose Down
ALTER TABLE standing_instructions ADD COLUMN remark BOOLEAN NOT NULL DEFAULT FALSE;
