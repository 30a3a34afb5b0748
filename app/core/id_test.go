package core_test

import (
	"testing"

	"bobbin/app/core"
)

// Each step of each attempt of each
// run has its own, and anybody can say which.
func TestDraftID(t *testing.T) {
	t.Parallel()
	runs := []core.Run{{ID: core.NewID[core.RunID]()}, {ID: core.NewID[core.RunID]()}, {ID: "no uuid"}}
	seen := map[core.MessageID]bool{}
	for _, run := range runs {
		for attempt := range 5 {
			for position := range 5 {
				id := run.DraftID(attempt, position)
				if !core.ValidID(id) || id[14] != '7' {
					t.Errorf("got id %q, want a UUID of version 7", id)
				}
				if again := (core.Run{ID: run.ID}).DraftID(attempt, position); again != id {
					t.Errorf("got %s and then %s for the same step, want one id", id, again)
				}
				seen[id] = true
			}
		}
	}
	if want := len(runs) * 25; len(seen) != want {
		t.Errorf("got %d different ids, want %d", len(seen), want)
	}
}
