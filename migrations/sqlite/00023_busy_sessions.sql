-- Sessions that are written or removed in several transactions.

-- +goose Up
-- Empty = none. import: messages beyond last_seq are being written. fork: the session is
-- an incomplete copy. purge: it is being removed. The last two are not shown to anybody.
ALTER TABLE sessions ADD COLUMN busy TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN busy_owner TEXT NOT NULL DEFAULT ''; -- who does it
ALTER TABLE sessions ADD COLUMN busy_until DATETIME; -- the end of the owner's lease, by the database's clock
CREATE INDEX sessions_busy ON sessions (id) WHERE busy <> '';

-- +goose Down
DELETE FROM sessions WHERE busy IN ('fork', 'purge');
DELETE FROM messages WHERE EXISTS (SELECT 1 FROM sessions s WHERE s.id = messages.session_id AND s.busy <> '' AND messages.seq > s.last_seq);
DROP INDEX sessions_busy;
ALTER TABLE sessions DROP COLUMN busy_until;
ALTER TABLE sessions DROP COLUMN busy_owner;
ALTER TABLE sessions DROP COLUMN busy;
