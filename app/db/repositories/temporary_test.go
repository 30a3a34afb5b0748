package repositories_test

import (
	"slices"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// temporary creates a temporary session of ann.
func (s *store) temporary(t *testing.T, user string) core.Session {
	t.Helper()
	return must.Get(s.sessions.Create(t.Context(), core.Session{Owner: "ann", Agent: "a", Title: "about bees", UserID: user, Temporary: true}))(t)
}

// A temporary session can be read by its id, and is in no list, no search, and no Slack; its
// forks are temporary, too.
func TestTemporarySessionsAreHidden(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		kept, brief := s.session(t), s.temporary(t, "carol")
		for _, id := range []core.SessionID{kept.ID, brief.ID} {
			s.finish(t, s.accept(t, ask(id, "a question about bees")).Run, "bees")
		}
		got := s.get(t, brief.ID)
		if !got.Temporary || got.ExpiresAt == nil || !got.ExpiresAt.Equal(got.UpdatedAt.Add(core.TemporaryLife)) || s.get(t, kept.ID).ExpiresAt != nil {
			t.Errorf("got temporary %v until %v, want it to be removed a day after %v", got.Temporary, got.ExpiresAt, got.UpdatedAt)
		}
		fork, err := repositories.NewBranches(s.Gorm).Fork(t.Context(), ann(), core.ForkSession{SessionID: brief.ID})
		if err != nil || !fork.Temporary {
			t.Errorf("got the fork %+v, %v, want it temporary", fork, err)
		}
		must.Do(t, s.archive(t.Context(), ann(), fork.ID))
		for _, q := range []core.SessionQuery{{}, {Archived: true}, {Order: core.OrderByCreation}, {UserID: "carol"}, {Text: "bees", Archived: true}, {Text: "bees", TitlesOnly: true}, {Agent: "a"}} {
			page := must.Get(s.sessions.List(t.Context(), ann(), q))(t)
			if slices.ContainsFunc(page.Items, func(s core.Session) bool { return s.ID != kept.ID }) {
				t.Errorf("the list of %+v has %d sessions, want at most the one that is kept", q, len(page.Items))
			}
		}
		page, err := repositories.NewSearch(s.Gorm).Messages(t.Context(), ann(), core.SearchQuery{Text: "bees"})
		s.index(t)
		if err != nil || len(page.Items) != 2 || page.Items[0].SessionID != kept.ID || page.Items[1].SessionID != kept.ID {
			t.Errorf("got the hits %+v, %v, want those of the session that is kept", page.Items, err)
		}
		compare.Equal(t, "entries of temporary sessions", 0, s.count(t, "SELECT COUNT(*) FROM search_entries WHERE session_id <> ?", kept.ID))
		_, err = repositories.NewSlackThreads(s.Gorm).Bind(t.Context(), core.SlackThread{Owner: "ann", SessionID: brief.ID, Team: "T1", Channel: "C1", Thread: "1.1", Mode: core.SlackTwoWay})
		wantError(t, "Slack", err, core.ErrUnprocessable)
	})
}

// The owner's default webhook hears nothing of temporary sessions; that of a run does.
func TestTemporarySessionsAndWebhooks(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		hook := core.Webhook{URL: "https://example.com/hook", Secret: "whsec_c2VjcmV0c2VjcmV0c2VjcmV0"}
		must.Do(t, repositories.NewOwnerWebhooks(s.Gorm).Set(t.Context(), "ann", hook))
		brief := s.temporary(t, "").ID
		s.turns(t, brief, 1)
		compare.Equal(t, "deliveries: want none to the owner's default", 0, s.count(t, "SELECT COUNT(*) FROM deliveries"))
		in := ask(brief, "with a webhook of its own")
		in.Webhook = &hook
		s.finish(t, s.accept(t, in).Run, "done")
		compare.Equal(t, "deliveries: want the one of the run's own webhook", 1, s.count(t, "SELECT COUNT(*) FROM deliveries"))
	})
}

// A day after its last activity a temporary session is due, also while a run waits for an
// answer, and its removal leaves nothing but its usage.
func TestTemporarySessionsExpire(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		r := repositories.NewPurges(s.Gorm)
		old, waiting, busy, fresh, kept := s.temporary(t, "carol").ID, s.temporary(t, "").ID, s.temporary(t, "").ID, s.temporary(t, "").ID, s.session(t).ID
		run := s.accept(t, ask(old, "hello")).Run
		s.write(t, core.RunWrite{RunID: run.ID, SessionID: old, Attempt: 1, Messages: []core.Message{answer("hi")},
			ModelCalls: []core.ModelCall{{ID: core.NewID[string](), Model: "m", Purpose: core.PurposeAnswer, Usage: core.Usage{InputTokens: 7}}}, End: &core.RunEnd{Status: core.RunSucceeded}})
		s.waits(t, waiting, 0, "pay:always")
		s.accept(t, ask(busy, "at work"))
		for _, id := range []core.SessionID{old, waiting, busy, kept} {
			s.exec(t, "UPDATE sessions SET updated_at = '2020-01-01 00:00:00+00:00' WHERE id = ?", id)
		}
		due, err := r.ExpiredSessions(t.Context(), true, core.TemporaryLife, 10)
		if want := []core.SessionID{old, waiting}; err != nil || !slices.Equal(sorted(due), sorted(want)) {
			t.Errorf("got %v, %v, want %v and neither %s at work nor %s in use", due, err, want, busy, fresh)
		}
		purges := repositories.NewPurges(s.Gorm)
		compare.Equal(t, "the user's sessions: want the temporary one", []core.SessionID{old}, must.Get(purges.OfUser(t.Context(), "ann", "carol"))(t))
		for _, id := range due {
			must.Get(purges.Session(t.Context(), id, true))(t)
		}
		compare.Equal(t, "rows are left", 0, s.count(t, "SELECT (SELECT COUNT(*) FROM messages WHERE session_id = ?) + (SELECT COUNT(*) FROM runs WHERE session_id = ?)", old, waiting))
		compare.Equal(t, "tokens of the usage", 7, s.count(t, "SELECT COALESCE(SUM(input_tokens), 0) FROM model_calls"))
	})
}

// sorted returns the ids in order.
func sorted(ids []core.SessionID) []core.SessionID { return slices.Sorted(slices.Values(ids)) }
