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

func testChat(t *testing.T, b *bobbin) {
	t.Helper()
	for _, name := range chatCases() {
		t.Run(name, func(t *testing.T) { b.play(t, "chat", name, nil, nil) })
	}
}

// TestChatOnPostgreSQL runs at night: the databases differ below the API, where each has its tests.
func TestChatOnPostgreSQL(t *testing.T) {
	t.Parallel()
	if !apptest.IsLong() {
		t.Skip("at night")
	}
	testChat(t, newBobbin(t, setup{database: dbtest.MigratedPostgresURL(t)}))
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	b := newBobbin(t, setup{database: dbtest.MigratedSQLiteURL(t), keys: true})
	b.play(t, "chat", "signin", map[string]any{"key": aliceKey}, nil)
}
