package e2e_test

import (
	"math"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/pgproxy"
	"bobbin/tests/provider"
)

// What a plain turn may take from its request to the end of its answer, with the client's reading
// of it. A turn waits for PostgreSQL twice when its message is accepted and once when its answer
// is stored.
const (
	maxStatements = 11
	maxRoundTrips = 3
)

// The same with what follows in the background. Six statements make the messages searchable; turns
// that follow one another share them.
const (
	maxAllStatements = 20
	maxAllRoundTrips = 12
)

// A plain turn loads and stores everything once; that the agent has tools of an MCP server and of
// files takes no statement. Background loops add statements to the turns that they meet: one turn
// must do without.
func TestStatementsOfATurn(t *testing.T) {
	t.Parallel()
	for name, agent := range map[string]string{"built-in tools": "assistant", "tools of an MCP server and of HTTP": "own"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
				w := newStatementCounter(t, url, agent)
				least, waits := w.repeat(maxStatements, maxRoundTrips, w.h.App.Statements)
				t.Logf("a turn takes at least %d statements, %d round trips", least, waits)
				if apptest.IsLong() { // on a busy machine loops meet every turn that waits for them
					least, waits = w.repeat(maxAllStatements, maxAllRoundTrips, func() int64 { return settledStatements(t, w.h) })
					t.Logf("and what follows: %d statements, %d round trips", least, waits)
				}
			})
		})
	}
}

// statementCounter counts what turns take.
type statementCounter struct {
	t     *testing.T
	h     *apptest.Bobbin
	id    core.SessionID
	trips func() int64
}

func newStatementCounter(t *testing.T, url, agent string) *statementCounter {
	w := &statementCounter{t: t, trips: func() int64 { return 0 }} // SQLite has none
	if strings.HasPrefix(url, "postgres") {
		proxy := pgproxy.New(t, url)
		url, w.trips = proxy.URL, proxy.RoundTrips
	}
	w.h = apptest.New(t, url, apptest.WithModel("house", 128_000, 1000, apptest.NewProvider(t, provider.Options{Pieces: 5})),
		mcpTool(t, "local", ""), withTool(t, "weather.yaml", "name: weather\nkind: http\ndescription: The weather.\nurl: https://example.com/weather\n"),
		apptest.WithAgent("own", "name: own\ntools: [local, weather, calculator]\n"))
	w.id = apptest.NewSession(t, w.h.Client, ops.NewSession{Agent: agent})
	apptest.SendMessage(t, w.h.Client, core.SendMessage{SessionID: w.id, Content: "hello"})
	return w
}

// repeat has turns until one takes no more than the limits, and fails if none of 100 does. It
// returns what the best one took.
func (w *statementCounter) repeat(statements, trips int64, count func() int64) (leastStatements, leastTrips int64) {
	w.t.Helper()
	leastStatements, leastTrips = math.MaxInt64, math.MaxInt64
	for range 100 {
		before, tripsBefore := count(), w.trips()
		apptest.ReadTurn(w.t, apptest.Send(w.t.Context(), w.h.Client, core.SendMessage{SessionID: w.id, Content: "How far is it to Oslo ?!"}))
		leastStatements, leastTrips = min(leastStatements, count()-before), min(leastTrips, w.trips()-tripsBefore)
		if leastStatements <= statements && leastTrips <= trips {
			return leastStatements, leastTrips
		}
	}
	w.t.Errorf("got at least %d statements and %d round trips a turn, want at most %d and %d", leastStatements, leastTrips, statements, trips)
	return leastStatements, leastTrips
}

// settledStatements returns the statements so far when no more follow from the last turn.
func settledStatements(t *testing.T, h *apptest.Bobbin) int64 {
	t.Helper()
	for n, quiet := h.App.Statements(), 0; ; {
		apptest.PauseBriefly(t)
		now := h.App.Statements()
		if quiet++; now != n {
			n, quiet = now, 0
		}
		if quiet == 20 {
			return n
		}
	}
}
