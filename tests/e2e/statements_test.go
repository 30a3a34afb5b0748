package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/pgproxy"
	"bobbin/tests/provider"
)

// maxStatements is how many SQL statements a plain turn may take, with what follows it in the
// background and the client's reading of the answer. Six make the messages searchable; turns that
// follow one another share them.
const maxStatements = 21

// maxRoundTrips is how often such a turn may wait for PostgreSQL: twice each when its message is
// accepted and when its answer is stored. The others make the messages searchable.
const maxRoundTrips = 13

// A plain turn loads and stores everything once; that the agent has tools of an MCP server and of
// files takes no statement. Background loops add statements to the turns that they meet, on a busy
// machine to most of them; one in nine turns must do without.
func TestStatementsOfATurn(t *testing.T) {
	t.Parallel()
	for name, agent := range map[string]string{"built-in tools": "assistant", "tools of an MCP server and of HTTP": "own"} {
		t.Run(name, func(t *testing.T) {
			dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
				trips := func() int64 { return 0 } // SQLite has none
				if strings.HasPrefix(url, "postgres") {
					proxy := pgproxy.New(t, url)
					url, trips = proxy.URL, proxy.RoundTrips
				}
				h := apptest.New(t, url, apptest.WithModel("house", 128_000, 1000, apptest.NewProvider(t, provider.Options{Pieces: 5})),
					mcpTool(t, "local", ""), withTool(t, "weather.yaml", "name: weather\nkind: http\ndescription: The weather.\nurl: https://example.com/weather\n"),
					apptest.WithAgent("own", "name: own\ntools: [local, weather, calculator]\n"))
				id := apptest.NewSession(t, h.Client, core.Session{Agent: agent})
				apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "hello"})
				var counts, waits []int64
				for range 9 {
					before, tripsBefore := settledStatements(t, h), trips()
					apptest.ReadTurn(t, h.Client.Send(t.Context(), core.SendMessage{SessionID: id, Content: "How far is it to Oslo ?!"}))
					counts = append(counts, settledStatements(t, h)-before)
					waits = append(waits, trips()-tripsBefore)
				}
				t.Logf("statements of a turn: %v, round trips: %v", counts, waits)
				if got := slices.Min(waits); got > maxRoundTrips {
					t.Errorf("got at least %d round trips a turn, want at most %d", got, maxRoundTrips)
				}
				if got := slices.Min(counts); got > maxStatements {
					t.Errorf("got at least %d statements a turn, want at most %d", got, maxStatements)
				}
			})
		})
	}
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
