-- A database with a long past, for growthdata_test.go: N sessions of five turns, of which
-- nine of ten are archived and 20 are pinned, and one more with N turns. Three runs have not
-- ended. In square brackets: ids of S(essions), M(essages), R(uns), C(alls), D(eliveries) and
-- B(lobs) by number, T(imes) in seconds before now, J(SON). ROWS[n] makes k go from 1 to n.

ROWS[N] INSERT INTO sessions (id, owner, agent, user_id, title, pinned, source, message_count, last_seq, last_event_seq, last_queue_seq, created_at, updated_at, archived_at)
SELECT S[k], 'ann', CASE WHEN k % (1 + N / 3) = 0 THEN 'rare' ELSE 'assistant' END, 'user ' || (k % 97), 'session ' || k, k <= 20, 'api', 10, 10, 15, 5,
    T[60 * 86400.0 - k * (59 * 86400.0 / N)], T[60 * 86400.0 - k * (59 * 86400.0 / N)], CASE WHEN k % 10 > 0 THEN T[60 * 86400.0 - k * (59 * 86400.0 / N)] END FROM k;

INSERT INTO sessions (id, owner, agent, source, message_count, last_seq, last_event_seq, last_queue_seq, created_at, updated_at)
VALUES (S[N + 1], 'ann', 'assistant', 'api', 2 * N, 2 * N, 3 * N, N, T[60 * 86400], T[60]);
INSERT INTO session_readers SELECT id, 'search', owner, -1, false FROM sessions;
INSERT INTO session_readers SELECT id, 'vectors', owner, last_seq, false FROM sessions;

ROWS[10 * N] INSERT INTO messages (id, session_id, owner, seq, parent_id, role, content, status, source, run_id, token_count, created_at)
SELECT M[k], S[(k - 1) / 10 + 1], 'ann', (k - 1) % 10 + 1, CASE WHEN k % 10 <> 1 THEN M[k - 1] END, CASE WHEN k % 2 = 1 THEN 'user' ELSE 'assistant' END,
    'lorem ipsum dolor sit amet ' || k, 'complete', 'api', R[(k + 1) / 2], 9, T[60] FROM k;

ROWS[2 * N] INSERT INTO messages (id, session_id, owner, seq, parent_id, role, content, status, source, run_id, token_count, created_at)
SELECT M[10 * N + k], S[N + 1], 'ann', k, CASE WHEN k > 1 THEN M[10 * N + k - 1] END, CASE WHEN k % 2 = 1 THEN 'user' ELSE 'assistant' END,
    'lorem ipsum dolor sit amet ' || k, 'complete', 'api', R[5 * N + (k + 1) / 2], 9, T[60] FROM k;

INSERT INTO message_vectors (message_id, session_id, owner, model, dimension, embedding)
SELECT id, session_id, owner, 'embed', 1, NULL FROM messages;

ROWS[5 * N] INSERT INTO runs (id, session_id, owner, user_id, queue_seq, status, agent, input, user_message_id, attempt, first_event_seq, created_at, started_at, finished_at)
SELECT R[k], S[(k - 1) / 5 + 1], 'ann', 'user ' || (((k - 1) / 5 + 1) % 97), (k - 1) % 5 + 1, 'succeeded', 'assistant', J['{"content":"","source":"api","token_count":0}'],
    M[2 * k - 1], 1, 3 * ((k - 1) % 5) + 1, T[86400], T[86400], T[86400] FROM k;

ROWS[N] INSERT INTO runs (id, session_id, owner, queue_seq, status, agent, input, user_message_id, attempt, first_event_seq, created_at, started_at, finished_at)
SELECT R[5 * N + k], S[N + 1], 'ann', k, 'succeeded', 'assistant', J['{"content":"","source":"api","token_count":0}'], M[10 * N + 2 * k - 1], 1, 3 * k - 2, T[120], T[120], T[60] FROM k;

ROWS[3] INSERT INTO runs (id, session_id, owner, user_id, queue_seq, status, agent, input, user_message_id, attempt, lease_owner, lease_until, created_at)
SELECT R[6 * N + k], S[10 * k], 'ann', 'user ' || (10 * k % 97), 6, CASE k % 3 WHEN 0 THEN 'running' WHEN 1 THEN 'waiting' ELSE 'queued' END, 'assistant', J['{"content":"","source":"api","token_count":0}'],
    M[12 * N + k], 1, CASE WHEN k % 3 = 0 THEN 'other' ELSE '' END, CASE WHEN k % 3 = 0 THEN T[-86400] END, T[60] FROM k;

ROWS[15 * N] INSERT INTO session_events (session_id, event_seq, owner, type, run_id, at, data)
SELECT S[(k - 1) / 15 + 1], (k - 1) % 15 + 1, 'ann', CASE k % 3 WHEN 1 THEN 'run.started' WHEN 2 THEN 'message.created' ELSE 'run.succeeded' END,
    R[(k + 2) / 3], T[60 * 86400.0 - k * (59 * 86400.0 / (15 * N))], J['{}'] FROM k;

ROWS[3 * N] INSERT INTO session_events (session_id, event_seq, owner, type, run_id, at, data)
SELECT S[N + 1], k, 'ann', CASE k % 3 WHEN 1 THEN 'run.started' WHEN 2 THEN 'message.created' ELSE 'run.succeeded' END, R[5 * N + (k + 2) / 3], T[60], J['{}'] FROM k;

ROWS[5 * N] INSERT INTO model_calls (id, owner, user_id, session_id, run_id, agent, purpose, model, input_tokens, output_tokens, cost_micro_usd, created_at)
SELECT C[k], 'ann', 'user ' || (((k - 1) / 5 + 1) % 97), S[(k - 1) / 5 + 1], R[k], 'assistant', 'answer', 'm', 1000, 100, 500, T[60 * 86400.0 - k * (59 * 86400.0 / (5 * N))] FROM k;

ROWS[N] INSERT INTO model_calls (id, owner, session_id, run_id, agent, purpose, model, input_tokens, output_tokens, cost_micro_usd, created_at)
SELECT C[5 * N + k], 'ann', S[N + 1], R[5 * N + k], 'assistant', 'answer', 'm', 1000, 100, 500, T[60] FROM k;

INSERT INTO usage_days SELECT owner, 'all', '', '', DAY, agent, model, 0, COUNT(*), SUM(input_tokens), SUM(output_tokens), 0, 0, 0, SUM(cost_micro_usd), 0, SUM(input_tokens + output_tokens)
FROM model_calls GROUP BY owner, DAY, agent, model;

INSERT INTO usage_days SELECT owner, 'user', user_id, '', DAY, agent, model, 0, COUNT(*), SUM(input_tokens), SUM(output_tokens), 0, 0, 0, SUM(cost_micro_usd), 0, SUM(input_tokens + output_tokens)
FROM model_calls GROUP BY owner, user_id, DAY, agent, model;

INSERT INTO usage_days SELECT owner, 'session', '', CAST(session_id AS text), DAY, '', '', 0, COUNT(*), SUM(input_tokens), SUM(output_tokens), 0, 0, 0, SUM(cost_micro_usd), 0, SUM(input_tokens + output_tokens)
FROM model_calls GROUP BY owner, session_id, DAY;

INSERT INTO usage_days SELECT owner, 'user_session', user_id, CAST(session_id AS text), DAY, '', '', 0, COUNT(*), SUM(input_tokens), SUM(output_tokens), 0, 0, 0, SUM(cost_micro_usd), 0, SUM(input_tokens + output_tokens)
FROM model_calls WHERE user_id <> '' GROUP BY owner, user_id, session_id, DAY;

ROWS[N] INSERT INTO idempotency_keys (owner, key, target, request_hash, status, location, created_at, expires_at)
SELECT 'ann', 'key ' || k, 'POST /api/v1/sessions', 'h', 201, '/api/v1/sessions/' || k, T[60], T[-86400] FROM k;

ROWS[N] INSERT INTO idempotency_mentions (owner, key, mention) SELECT 'ann', 'key ' || k, CAST(S[k] AS text) FROM k;

ROWS[N] INSERT INTO deliveries (id, owner, session_id, run_id, kind, event, target, receiver, state, since, due_at, created_at)
SELECT D[k], 'ann', S[k], R[5 * k], 'webhook', 'run.succeeded', 'https://dead.example/hook', 'dead.example', CASE WHEN k % 2 = 0 THEN 'pending' ELSE 'delivered' END, T[k], T[k], T[k] FROM k;

ROWS[N] INSERT INTO blob_contents (owner, sha256, size, created_at, data) SELECT 'ann', 'hash ' || k, 9, T[864000], BYTES FROM k;

ROWS[N] INSERT INTO blobs (id, owner, sha256, media_type, name, size, created_at, uploaded_at, unreferenced) SELECT B[k], 'ann', 'hash ' || k, 'text/plain', 'x', 9, T[864000], T[864000], false FROM k;

ROWS[N] INSERT INTO blob_references (message_id, blob_id, session_id, owner) SELECT M[10 * k], B[k], S[k], 'ann' FROM k;
