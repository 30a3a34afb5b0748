-- An approval holds for the tool as it was when it was asked for. A call is asked for again when its
-- tool has changed.

-- +goose Up
ALTER TABLE approvals ADD COLUMN definition TEXT NOT NULL DEFAULT ''; -- a hash; what was asked for before has none
DROP INDEX approvals_call;
CREATE INDEX approvals_call ON approvals (run_id, call_id);

-- +goose Down
DELETE FROM approvals WHERE status = 'closed' AND EXISTS (
    SELECT 1 FROM approvals a WHERE a.run_id = approvals.run_id AND a.call_id = approvals.call_id AND a.id > approvals.id);
DROP INDEX approvals_call;
CREATE UNIQUE INDEX approvals_call ON approvals (run_id, call_id);
ALTER TABLE approvals DROP COLUMN definition;
