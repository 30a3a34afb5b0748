-- Events and runs refer to messages instead of repeating them, kept answers say what
-- they mention, and indexes so that no question looks through what is long past.

-- +goose Up
ALTER TABLE runs ADD COLUMN first_event_seq bigint NOT NULL DEFAULT 0; -- 0 = not kept when the column was made
UPDATE runs SET first_event_seq = e.seq
FROM (SELECT run_id, MIN(event_seq) AS seq FROM session_events WHERE run_id IS NOT NULL GROUP BY run_id) e
WHERE e.run_id = runs.id;
CREATE INDEX runs_user_message ON runs (user_message_id);

ALTER TABLE sessions ADD COLUMN full_event_seq bigint NOT NULL DEFAULT 0; -- up to it events hold whole messages
UPDATE sessions SET full_event_seq = last_event_seq;

-- Lists of sessions: of those that are archived, and of the others.
DROP INDEX sessions_activity;
DROP INDEX sessions_user_activity;
CREATE INDEX sessions_activity ON sessions (owner, updated_at, id) WHERE archived_at IS NULL;
CREATE INDEX sessions_user_activity ON sessions (owner, user_id, updated_at, id) WHERE archived_at IS NULL;
CREATE INDEX sessions_agent_activity ON sessions (owner, agent, updated_at, id) WHERE archived_at IS NULL;
CREATE INDEX sessions_created ON sessions (owner, created_at, id) WHERE archived_at IS NULL;
CREATE INDEX sessions_archived_activity ON sessions (owner, updated_at, id) WHERE archived_at IS NOT NULL;
CREATE INDEX sessions_archived_user_activity ON sessions (owner, user_id, updated_at, id) WHERE archived_at IS NOT NULL;
CREATE INDEX sessions_archived_created ON sessions (owner, created_at, id) WHERE archived_at IS NOT NULL;

-- The ids in a kept answer and in the path of its request, and its users as "user "
-- and the name.
CREATE TABLE idempotency_mentions (
    owner   text NOT NULL,
    key     text NOT NULL,
    mention text NOT NULL,
    PRIMARY KEY (mention, owner, key),
    FOREIGN KEY (owner, key) REFERENCES idempotency_keys (owner, key) ON DELETE CASCADE
);
CREATE INDEX idempotency_mentions_key ON idempotency_mentions (owner, key);
-- What answers mention that are kept already is not known: they are not given again.
INSERT INTO idempotency_mentions
SELECT DISTINCT owner, key, (regexp_matches(target, '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}', 'g'))[1]
FROM idempotency_keys;
UPDATE idempotency_keys SET body = NULL, location = '' WHERE status IS NOT NULL;

-- No message refers to the blob, as far as is known: what a sweep looks at.
ALTER TABLE blobs ADD COLUMN unreferenced boolean NOT NULL DEFAULT true;
UPDATE blobs SET unreferenced = false WHERE EXISTS (SELECT 1 FROM blob_references r WHERE r.blob_id = blobs.id);
DROP INDEX blobs_uploaded;
CREATE INDEX blobs_unreferenced ON blobs (uploaded_at) WHERE unreferenced;

-- What uploads count against: of an owner each content once, of a user each file.
CREATE TABLE blob_totals (
    owner   text NOT NULL,
    by_user boolean NOT NULL,
    user_id text NOT NULL, -- empty without by_user
    bytes   bigint NOT NULL,
    blobs   bigint NOT NULL,
    PRIMARY KEY (owner, by_user, user_id)
);
INSERT INTO blob_totals SELECT b.owner, false, '', (SELECT SUM(c.size) FROM blob_contents c WHERE c.owner = b.owner), COUNT(*) FROM blobs b GROUP BY b.owner;
INSERT INTO blob_totals SELECT owner, true, user_id, SUM(size), COUNT(*) FROM blobs WHERE user_id <> '' GROUP BY owner, user_id;

-- +goose Down
DROP TABLE blob_totals;
DROP INDEX blobs_unreferenced;
CREATE INDEX blobs_uploaded ON blobs (uploaded_at);
ALTER TABLE blobs DROP COLUMN unreferenced;
DROP TABLE idempotency_mentions;
DROP INDEX sessions_archived_created;
DROP INDEX sessions_archived_user_activity;
DROP INDEX sessions_archived_activity;
DROP INDEX sessions_created;
DROP INDEX sessions_agent_activity;
DROP INDEX sessions_user_activity;
DROP INDEX sessions_activity;
CREATE INDEX sessions_activity ON sessions (owner, updated_at, id);
CREATE INDEX sessions_user_activity ON sessions (owner, user_id, updated_at, id);
ALTER TABLE sessions DROP COLUMN full_event_seq;
DROP INDEX runs_user_message;
ALTER TABLE runs DROP COLUMN first_event_seq;
