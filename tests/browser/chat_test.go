package browser_test

import (
	"testing"

	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
)

// chatCases is a person's day: writes, reads while it is written, stops, edits, comes back, finds, approves.
func chatCases() []string {
	return []string{"send", "stream", "stop", "queue", "edit", "drafts", "list", "elsewhere", "search", "approve", "failed"}
}

func TestChat(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		playChat(t, dbtest.MigratedSQLiteURL(t), chatCases())
	})
	t.Run("postgres", func(t *testing.T) { // what has to do with storage
		t.Parallel()
		cases := []string{"send", "edit"}
		if apptest.IsLong() {
			cases = chatCases()
		}
		playChat(t, dbtest.MigratedPostgresURL(t), cases)
	})
}

func playChat(t *testing.T, url string, cases []string) {
	t.Helper()
	b := newBobbin(t, setup{database: url})
	for _, name := range cases {
		t.Run(name, func(t *testing.T) { b.play(t, "chat", name, nil, nil) })
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	b := newBobbin(t, setup{database: dbtest.MigratedSQLiteURL(t), keys: true})
	b.play(t, "chat", "signin", map[string]any{"key": aliceKey}, nil)
}
