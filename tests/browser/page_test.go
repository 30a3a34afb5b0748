package browser_test

import (
	"testing"

	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
)

// TestPage has the tests that one Bobbin serves for. They run one after the other: some cut its connections.
func TestPage(t *testing.T) {
	t.Parallel()
	b := newBobbin(t, setup{database: dbtest.MigratedSQLiteURL(t), window: 200_000})
	for _, part := range []struct {
		name string
		test func(*testing.T, *bobbin)
	}{
		{"size", testSize},
		{"chat", testChat},
		{"access", testAccess},
		{"context", testContext},
		{"cuts", testCuts},
		{"failures", testFailures},
		{"hostile", testHostileText},
		{"stream", func(t *testing.T, b *bobbin) {
			if apptest.IsLong() {
				t.Skip("TestShowStream has the long form")
			}
			testStream(t, b)
		}},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, b) })
	}
}
