package repositories_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// A setup is stored with the answer whose thoughts are bound to it, or with the summary that is, byte for byte and once. Forks get
// copies, others see none, a session keeps the newest, and a purge removes all.
func TestPromptSetups(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		setups := repositories.NewPromptSetups(s.Gorm)
		id := s.session(t).ID
		write := func(text string) core.PromptSetup {
			setup, ok := core.NewPromptSetup(text, "Use the tools.", json.RawMessage(`[{"b":1,  "a":2}]`))
			run := s.accept(t, ask(id, "hi")).Run
			m := answer("hello")
			s.write(t, core.RunWrite{
				RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt, Messages: []core.Message{m}, Setup: &setup,
				End: &core.RunEnd{Status: core.RunSucceeded, AnswerID: m.ID},
			})
			compare.True(t, ok, "%q cannot be stored", text)
			return setup
		}
		find := func(tenant core.Tenant, session core.SessionID, hashes ...string) []core.PromptSetup {
			found, err := setups.Find(t.Context(), tenant, session, hashes)
			if err != nil && !errors.Is(err, core.ErrNotFound) {
				t.Fatal(err)
			}
			return found
		}
		first := write("Help.")
		write("Help.")
		second, _ := core.NewPromptSetup("Help them.", "", json.RawMessage(`[]`))
		must.Get2(s.sessions.ApplyContext(t.Context(), ann(), core.ContextChange{SessionID: id, Expect: s.get(t, id).PromptRevision, Setup: &second}))(t)
		compare.Equal(t, "the first one", []core.PromptSetup{first}, find(ann(), id, first.Hash, "unknown"))
		fork := must.Get(repositories.NewBranches(s.Gorm).Fork(t.Context(), ann(), core.ForkSession{SessionID: id}))(t)
		compare.Equal(t, "in a fork: want both", 2, len(find(ann(), fork.ID, first.Hash, second.Hash)))
		got := find(core.Tenant{Owner: "bob"}, id, first.Hash)
		compare.True(t, len(got) == 0, "another owner got %+v", got)
		for n := range 16 {
			write(fmt.Sprint("Help ", n))
		}
		if got := find(ann(), id, first.Hash, second.Hash); len(got) > 0 {
			t.Errorf("got %+v behind 16 others, want none", got)
		}
		must.Get(repositories.NewPurges(s.Gorm).Session(t.Context(), id, false))(t)
		compare.Equal(t, "system prompts are left of a purged session", 0, s.count(t, "SELECT COUNT(*) FROM prompt_setups WHERE session_id = ?", id))
	})
}
