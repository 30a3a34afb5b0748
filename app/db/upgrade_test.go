package db_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

// oldRows are rows as the versions before migration 27 wrote them: two sessions, of which
// one has two runs, and what belongs to them.
const oldRows = `
INSERT INTO sessions (id, owner, user_id, last_event_seq, created_at, updated_at) VALUES ('@s1', 'ann', 'carol', 5, '2026-01-01 00:00:00+00:00', '2026-01-01 00:00:00+00:00');
INSERT INTO sessions (id, owner, created_at, updated_at) VALUES ('@s2', 'ann', '2026-01-01 00:00:00+00:00', '2026-01-01 00:00:00+00:00');
INSERT INTO runs (id, session_id, owner, queue_seq, status, input, user_message_id, created_at) VALUES ('@r1', '@s1', 'ann', 1, 'succeeded', '{"content":"one"}', '@m1', '2026-01-01 00:00:00+00:00');
INSERT INTO runs (id, session_id, owner, queue_seq, status, input, user_message_id, created_at) VALUES ('@r2', '@s1', 'ann', 2, 'succeeded', '{"content":"two"}', '@m2', '2026-01-01 00:00:00+00:00');
INSERT INTO session_events (session_id, event_seq, owner, type, run_id, at, data) VALUES ('@s1', 2, 'ann', 'run.started', '@r1', '2026-01-01 00:00:00+00:00', '{}');
INSERT INTO session_events (session_id, event_seq, owner, type, run_id, at, data) VALUES ('@s1', 4, 'ann', 'run.queued', '@r2', '2026-01-01 00:00:00+00:00', '{}');
INSERT INTO session_events (session_id, event_seq, owner, type, run_id, at, data) VALUES ('@s1', 5, 'ann', 'run.started', '@r2', '2026-01-01 00:00:00+00:00', '{}');
INSERT INTO model_calls (id, owner, user_id, session_id, agent, purpose, model, input_tokens, output_tokens, cost_micro_usd, created_at) VALUES ('@c1', 'ann', 'carol', '@s1', 'a', 'answer', 'm', 10, 5, 7, '2026-01-01 23:30:00+00:00');
INSERT INTO model_calls (id, owner, user_id, session_id, agent, purpose, model, estimated_tokens, created_at) VALUES ('@c2', 'ann', 'carol', '@s1', 'a', 'answer', 'm', 40, '2026-01-01 23:50:00+00:00');
INSERT INTO model_calls (id, owner, user_id, session_id, agent, purpose, model, input_tokens, error, created_at) VALUES ('@c3', 'ann', '', NULL, 'a', 'answer', 'm', 3, 'timeout', '2026-01-02 00:10:00+00:00');
INSERT INTO idempotency_keys (owner, key, target, request_hash, status, location, body, created_at, expires_at) VALUES ('ann', 'k', 'PATCH /api/v1/sessions/@s1/x/@m1', 'h', 200, '/x', @bytes, '2026-01-01 00:00:00+00:00', '2026-01-02 00:00:00+00:00');
INSERT INTO idempotency_keys (owner, key, target, request_hash, created_at, expires_at) VALUES ('ann', 'at work', 'POST /api/v1/sessions', 'token', '2026-01-01 00:00:00+00:00', '2026-01-02 00:00:00+00:00');
INSERT INTO deliveries (id, owner, session_id, run_id, kind, event, target, state, since, next_at, created_at) VALUES ('@d1', 'ann', '@s1', '@r1', 'webhook', 'run.succeeded', 'https://user:pw@Host.example:444/a/b?c=://d', 'pending', '2026-01-01 00:00:00+00:00', '2026-01-03 00:00:00+00:00', '2026-01-01 00:00:00+00:00');
INSERT INTO deliveries (id, owner, session_id, run_id, kind, event, target, state, since, created_at) VALUES ('@d2', 'ann', '@s1', '@r1', 'webhook', 'run.succeeded', 'https://b.example', 'pending', '2026-01-01 00:00:00+00:00', '2026-01-01 00:00:00+00:00');
INSERT INTO blob_contents (owner, sha256, size, created_at, data) VALUES ('ann', 'x', 9, '2026-01-01 00:00:00+00:00', @bytes);
INSERT INTO blobs (id, owner, user_id, sha256, media_type, name, size, created_at, uploaded_at) VALUES ('@b1', 'ann', 'carol', 'x', 'text/plain', 'a', 9, '2026-01-01 00:00:00+00:00', '2026-01-01 00:00:00+00:00');
INSERT INTO blobs (id, owner, sha256, media_type, name, size, created_at, uploaded_at) VALUES ('@b2', 'ann', 'x', 'text/plain', 'b', 9, '2026-01-01 00:00:00+00:00', '2026-01-01 00:00:00+00:00');
INSERT INTO blob_references (message_id, blob_id, session_id, owner) VALUES ('@m1', '@b1', '@s1', 'ann')`

// Migrations fill the columns and tables that came later with what earlier versions stored.
//
// Finding: runs-17
func TestUpgradeOfWhatIsThere(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		if err := d.MigrateTo(t.Context(), 26); err != nil {
			t.Fatal(err)
		}
		bytes := "x'7b7d'"
		if d.Dialect() == "postgres" {
			bytes = `'{}'::bytea`
		}
		names := []string{"@bytes", bytes}
		ids := map[string]string{}
		for _, name := range []string{"@s1", "@s2", "@r1", "@r2", "@m1", "@m2", "@c1", "@c2", "@c3", "@d1", "@d2", "@b1", "@b2"} {
			ids[name] = core.NewID[string]()
			names = append(names, name, ids[name])
		}
		for _, stmt := range strings.Split(strings.TrimSpace(strings.NewReplacer(names...).Replace(oldRows)), ";\n") {
			if err := d.Gorm.WithContext(t.Context()).Exec(stmt).Error; err != nil {
				t.Fatalf("%s: %v", stmt, err)
			}
		}
		migrate(t, d)
		wantUpgraded(t, d, ids)
		if err := d.MigrateTo(t.Context(), 26); err != nil {
			t.Fatalf("down with rows: %v", err)
		}
		migrate(t, d)
	})
}

// wantUpgraded checks what the migrations made of the old rows.
func wantUpgraded(t *testing.T, d *db.DB, ids map[string]string) {
	t.Helper()
	for query, want := range map[string]string{
		"SELECT first_event_seq FROM runs WHERE id = '@r1'":    "2",
		"SELECT first_event_seq FROM runs WHERE id = '@r2'":    "4",
		"SELECT full_event_seq FROM sessions WHERE id = '@s1'": "5",
		"SELECT usage_calls || '/' || usage_input_tokens || '/' || usage_cost_micro_usd || '/' || usage_unpriced_calls FROM sessions WHERE id = '@s1'": "2/10/7/1",
		"SELECT usage_calls FROM sessions WHERE id = '@s2'": "0",
		"SELECT calls || '/' || spent_tokens || '/' || cost_micro_usd || '/' || unpriced_calls FROM usage_days WHERE level = 'user' AND user_id = 'carol' AND day = '2026-01-01'": "2/55/7/1",
		"SELECT calls || '/' || spent_tokens || '/' || unpriced_calls FROM usage_days WHERE level = 'all' AND day = '2026-01-02'":                                                 "1/3/1",
		"SELECT COUNT(*) FROM usage_days":                                                           "7",
		"SELECT COUNT(*) FROM idempotency_mentions WHERE mention IN ('@s1', '@m1')":                 "2",
		"SELECT COUNT(*) FROM idempotency_keys WHERE body IS NULL":                                  "2",
		"SELECT receiver FROM deliveries WHERE id = '@d1'":                                          "host.example:444",
		"SELECT receiver FROM deliveries WHERE id = '@d2'":                                          "b.example",
		"SELECT COUNT(*) FROM deliveries WHERE id = '@d1' AND due_at = '2026-01-03 00:00:00+00:00'": "1",
		"SELECT COUNT(*) FROM deliveries WHERE id = '@d2' AND due_at = created_at":                  "1",
		"SELECT COUNT(*) FROM blobs WHERE id = '@b1' AND NOT unreferenced":                          "1",
		"SELECT COUNT(*) FROM blobs WHERE id = '@b2' AND unreferenced":                              "1",
		"SELECT bytes || '/' || blobs FROM blob_totals WHERE NOT by_user":                           "9/2",
		"SELECT bytes || '/' || blobs FROM blob_totals WHERE user_id = 'carol'":                     "9/1",
	} {
		for name, id := range ids {
			query = strings.ReplaceAll(query, name, id)
		}
		if got := fmt.Sprint(queryTexts(t, d, "SELECT CAST(v AS text) FROM ("+strings.Replace(query, " FROM ", " AS v FROM ", 1)+") q")); got != "["+want+"]" {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

// Old names of sessions are found by the owner's keys and by the tokens of the session's user; keys stay
// apart from names.
func TestUpgradeOfAliases(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		if err := d.MigrateTo(t.Context(), 70); err != nil {
			t.Fatal(err)
		}
		g := d.Gorm.WithContext(t.Context())
		add := func(user string, aliases ...string) {
			id := core.NewID[string]()
			err := g.Exec("INSERT INTO sessions (id, owner, user_id, created_at, updated_at) VALUES (?, 'ann', ?, ?, ?)", id, user, core.Now(), core.Now()).Error
			for _, alias := range aliases {
				surface, name, _ := strings.Cut(alias, " ")
				if err == nil {
					err = g.Exec("INSERT INTO session_aliases (owner, surface, alias, session_id, created_at) VALUES ('ann', ?, ?, ?, ?)", surface, name, id, core.Now()).Error
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		names := func() (list []string) {
			if err := g.Raw("SELECT alias FROM session_aliases").Scan(&list).Error; err != nil {
				t.Fatal(err)
			}
			slices.Sort(list)
			return list
		}
		add("", "api chat", "slack T/C/1", "api idempotency-key:k")
		add("zoë", "api chat-2", "api response-idempotency-key:k2", "api response-idempotency-key:k")
		before := names()
		migrate(t, d)
		want := []string{
			"T/C/1", "idempotency-key:k", "idempotency-key:k2", "name:chat", "name:chat-2", "name:response-idempotency-key:k",
			"user/3/zoë/idempotency-key:k2", "user/3/zoë/name:chat-2", "user/3/zoë/name:response-idempotency-key:k",
		}
		if got := names(); !slices.Equal(got, want) {
			t.Errorf("got the names %q, want %q", got, want)
		}
		if err := d.MigrateTo(t.Context(), 70); err != nil {
			t.Fatal(err)
		}
		if got := names(); len(got) != len(before) {
			t.Errorf("got the names %q after going down, want %q", got, before)
		}
	})
}
