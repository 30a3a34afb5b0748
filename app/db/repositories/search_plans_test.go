package repositories_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// Where a third of all sessions is active at once and each is long, the index reads their new messages, and a search
// those around what it found; neither reads the rest of the sessions.
func TestWindowsOfLongSessions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := &bigHistory{store: open(d), n: 100} // messages of each session
		for _, stmt := range []string{
			`ROWS[120] INSERT INTO sessions (id, owner, agent, source, message_count, last_seq, indexed_seq, created_at, updated_at)
			SELECT S[k], 'ann', 'assistant', 'api', N, N, N, T[60], T[60] FROM k`,
			"INSERT INTO session_readers SELECT id, 'search', owner, last_seq, false FROM sessions",
			"INSERT INTO session_readers SELECT id, 'vectors', owner, last_seq, false FROM sessions",
			`ROWS[120 * N] INSERT INTO messages (id, session_id, owner, seq, role, content, status, source, token_count, created_at)
			SELECT M[k], S[(k - 1) % 120 + 1], 'ann', (k - 1) / 120 + 1, 'user', 'lorem ipsum dolor sit amet ' || k, 'complete', 'api', 9, T[60] FROM k`,
			`ROWS[40] INSERT INTO messages (id, session_id, owner, seq, role, content, status, source, token_count, created_at)
			SELECT M[120 * N + k], S[k], 'ann', N + 1, 'user', 'pump ' || k, 'complete', 'api', 9, T[1] FROM k`,
			"ROWS[40] UPDATE sessions SET last_seq = N + 1, updated_at = T[1] WHERE id IN (SELECT S[k] FROM k)",
		} {
			h.exec(t, h.translated(stmt))
		}
		if h.Dialect() == "postgres" {
			h.exec(t, `INSERT INTO search_entries (owner, session_id, message_id, created_at, words, seq, length, terms)
				SELECT owner, session_id, id, created_at, to_tsvector('simple', 'lorem ipsum'), seq, 5, ''::bytea FROM messages WHERE seq <= 100`)
			h.exec(t, "ANALYZE")
		}
		index, q := repositories.NewSearch(h.Gorm), core.SearchQuery{Text: "pump", Around: 2}
		windows := 0
		for _, asked := range h.recorded(t, func() {
			n, done := must.Get2(index.IndexNext(t.Context()))(t)
			compare.Equal(t, "indexed", []any{40, true}, []any{n, done})
			page := must.Get(index.Messages(t.Context(), ann(), q))(t)
			compare.Equal(t, "found", 40, len(page.Items))
			must.Do(t, index.AddNeighbors(t.Context(), ann(), q, page.Items))
		}) {
			if strings.HasPrefix(asked.text, "WITH w") {
				windows++
				h.wantBounded(t, "a query of windows", asked)
			}
		}
		if windows < 4 { // on PostgreSQL five: its index has more than is ranked whole
			t.Errorf("got %d queries of windows, want at least 4", windows)
		}
	})
}
