-- Deliveries are claimed by their receiver, and given up together when it was not
-- reached for long.

-- +goose Up
ALTER TABLE deliveries ADD COLUMN receiver TEXT NOT NULL DEFAULT ''; -- the host that target names, and its port
ALTER TABLE deliveries ADD COLUMN due_at DATETIME NOT NULL DEFAULT '1970-01-01 00:00:00+00:00'; -- by the database's clock: the next try, or the end of the lease
UPDATE deliveries SET due_at = COALESCE(max(next_at, lease_until), lease_until, next_at, created_at),
    receiver = substr(target, instr(target, '://') + 3);
UPDATE deliveries SET receiver = substr(receiver, 1, instr(receiver || '/', '/') - 1);
UPDATE deliveries SET receiver = lower(substr(receiver, instr(receiver, '@') + 1));
ALTER TABLE deliveries DROP COLUMN next_at;
DROP INDEX deliveries_pending;
CREATE INDEX deliveries_due ON deliveries (receiver, due_at, id) WHERE state = 'pending';
CREATE INDEX deliveries_state ON deliveries (state, id);

-- Receivers that the last try did not reach.
CREATE TABLE receiver_outages (
    receiver TEXT NOT NULL PRIMARY KEY,
    tries    INTEGER NOT NULL, -- since it was reached last
    since    DATETIME NOT NULL -- of the first of them; by the database's clock
);

-- +goose Down
DROP TABLE receiver_outages;
DROP INDEX deliveries_state;
DROP INDEX deliveries_due;
CREATE INDEX deliveries_pending ON deliveries (created_at, id) WHERE state = 'pending';
ALTER TABLE deliveries ADD COLUMN next_at DATETIME;
UPDATE deliveries SET next_at = due_at WHERE state = 'pending' AND tries > 0;
ALTER TABLE deliveries DROP COLUMN due_at;
ALTER TABLE deliveries DROP COLUMN receiver;
