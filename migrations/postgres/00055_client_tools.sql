-- Calls of tools that the client of a run executes wait as approvals do; answers carry results.

-- +goose Up
ALTER TABLE approvals ADD COLUMN kind text NOT NULL DEFAULT 'approval';
ALTER TABLE approvals ADD COLUMN edited_arguments text NOT NULL DEFAULT ''; -- in place of arguments
ALTER TABLE approvals ADD COLUMN result text NOT NULL DEFAULT '';           -- of an answered call
ALTER TABLE approvals ADD COLUMN failed boolean NOT NULL DEFAULT false;     -- the result is an error

-- +goose Down
ALTER TABLE approvals DROP COLUMN failed;
ALTER TABLE approvals DROP COLUMN result;
ALTER TABLE approvals DROP COLUMN edited_arguments;
ALTER TABLE approvals DROP COLUMN kind;
