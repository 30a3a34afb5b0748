package slackclients_test

import (
	"fmt"
	"os"
	"testing"

	"bobbin/tests/dbtest"
	"bobbin/tests/process"
	"bobbin/tests/slackfake/fakeslack"
)

// way is how Slack and Bobbin reach each other, and where Bobbin stores what it has.
type way struct {
	name   string
	socket bool
	url    func(t *testing.T) string
}

// ways returns two ways that have everything once, in the long form all.
func ways() []way {
	sqlite := func(t *testing.T) string { t.Helper(); return dbtest.MigratedSQLiteURL(t) }
	postgres := func(t *testing.T) string { t.Helper(); return dbtest.MigratedPostgresURL(t) }
	all := []way{{"HTTP, SQLite", false, sqlite}, {"Socket Mode, PostgreSQL", true, postgres}, {"HTTP, PostgreSQL", false, postgres}, {"Socket Mode, SQLite", true, sqlite}}
	if os.Getenv("BOBBIN_TEST_LONG") == "" {
		return all[:2]
	}
	return all
}

// People who use Slack's own client talk to a Bobbin in a process. Each event comes twice.
func TestSlackClients(t *testing.T) {
	t.Parallel()
	process.FindNodeClients(t)
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			b := newBobbin(t, w.url(t), w.socket)
			b.DisturbEvents(fakeslack.EventFaults{Duplicate: true})
			t.Run("together", func(t *testing.T) {
				for i, s := range scenarios() {
					if !s.alone {
						t.Run(s.name, func(t *testing.T) {
							t.Parallel()
							s.run(t, b.converse(i))
						})
					}
				}
			})
			for i, s := range scenarios() {
				if s.alone {
					t.Run(s.name, func(t *testing.T) { s.run(t, b.converse(i)) })
				}
			}
		})
	}
}

// converse returns a conversation in a channel of its own.
func (b *bobbin) converse(i int) *conversation {
	c := &conversation{bobbin: b, mark: fmt.Sprintf("[mark %d]", i)}
	c.channel = b.ws.AddChannel(fmt.Sprintf("C9%02d", i), fmt.Sprintf("scenario-%d", i)).ID
	return c
}
