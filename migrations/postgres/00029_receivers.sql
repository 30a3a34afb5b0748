-- Deliveries are claimed by their receiver, and given up together when it was not
-- reached for long.

-- +goose Up
ALTER TABLE deliveries
    ADD COLUMN receiver text NOT NULL DEFAULT '', -- the host that target names, and its port
    ADD COLUMN due_at   timestamptz NOT NULL DEFAULT '1970-01-01 00:00:00+00'; -- by the database's clock: the next try, or the end of the lease
UPDATE deliveries SET due_at = COALESCE(GREATEST(next_at, lease_until), created_at),
    receiver = lower(substr(split_part(split_part(target, '://', 2), '/', 1), strpos(split_part(split_part(target, '://', 2), '/', 1), '@') + 1));
ALTER TABLE deliveries DROP COLUMN next_at;
DROP INDEX deliveries_pending;
CREATE INDEX deliveries_due ON deliveries (receiver, due_at, id) WHERE state = 'pending';
CREATE INDEX deliveries_state ON deliveries (state, id);

-- Receivers that the last try did not reach.
CREATE TABLE receiver_outages (
    receiver text NOT NULL PRIMARY KEY,
    tries    bigint NOT NULL, -- since it was reached last
    since    timestamptz NOT NULL -- of the first of them; by the database's clock
);

-- +goose Down
DROP TABLE receiver_outages;
DROP INDEX deliveries_state;
DROP INDEX deliveries_due;
CREATE INDEX deliveries_pending ON deliveries (created_at, id) WHERE state = 'pending';
ALTER TABLE deliveries ADD COLUMN next_at timestamptz;
UPDATE deliveries SET next_at = due_at WHERE state = 'pending' AND tries > 0;
ALTER TABLE deliveries
    DROP COLUMN due_at,
    DROP COLUMN receiver;
