package repositories_test

import (
	"context"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// Every row has an owner: what belongs to another owner does not exist. The table names
// every method that takes a Scope.
func TestOtherOwnersSeeNothing(t *testing.T) {
	t.Parallel()
	type target struct {
		session core.SessionID
		message core.MessageID
		run     core.RunID
	}
	title := "mine now"
	calls := map[string]func(ctx context.Context, s *store, sc core.Tenant, at target) error{
		"sessions.Get": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.sessions.Get(ctx, sc, at.session)
			return err
		},
		"sessions.Update": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, _, err := s.sessions.Update(ctx, sc, at.session, core.SessionPatch{Title: &title})
			return err
		},
		"sessions.ApplyContext": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, _, err := s.sessions.ApplyContext(ctx, sc, core.ContextChange{SessionID: at.session, Expect: 1, PromptState: []byte(`{}`)})
			return err
		},
		"sessions.SummaryWork": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.sessions.SummaryWork(ctx, sc, at.session)
			return err
		},
		"sessions.SummaryFailed": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.sessions.SummaryFailed(ctx, sc, core.SummaryFailure{SessionID: at.session, Reason: "none"})
			return err
		},
		"sessions.LeaseSummary": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.sessions.LeaseSummary(ctx, sc, at.session, "w", 0)
			return err
		},
		"messages.Get": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.messages.Get(ctx, sc, at.session, at.message)
			return err
		},
		"messages.GetMessagesAfter": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.messages.GetMessagesAfter(ctx, sc, at.session, "")
			return err
		},
		"messages.GetMessagesAfter(id)": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.messages.GetMessagesAfter(ctx, sc, at.session, at.message)
			return err
		},
		"messages.List": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.messages.List(ctx, sc, at.session, core.MessageQuery{})
			return err
		},
		"messages.Pinned": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.messages.Pinned(ctx, sc, at.session)
			return err
		},
		"messages.GetMessages": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.messages.GetMessages(ctx, sc, at.session, []core.MessageID{at.message})
			return err
		},
		"messages.CountOnPath": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.messages.CountOnPath(ctx, sc, at.session)
			return err
		},
		"summaries.List": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.summaries.List(ctx, sc, at.session, core.PageQuery{})
			return err
		},
		"summaries.Get": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.summaries.Get(ctx, sc, at.session, 1)
			return err
		},
		"runs.Accept": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.runs.Accept(ctx, sc, ask(at.session, "let me in"))
			return err
		},
		"runs.RequestCancel": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, _, err := s.runs.RequestCancel(ctx, sc, at.run)
			return err
		},
		"runs.Get": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.runs.Get(ctx, sc, at.run)
			return err
		},
		"runs.List": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.runs.List(ctx, sc, at.session, core.PageQuery{})
			return err
		},
		"runs.Pending": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.runs.Pending(ctx, sc, at.session)
			return err
		},
		"runs.Active": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.runs.Active(ctx, sc, at.session)
			return err
		},
		"events.Last": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.events.Last(ctx, sc, at.session)
			return err
		},
		"modelCalls.SessionUsage": func(ctx context.Context, s *store, sc core.Tenant, at target) error {
			_, err := s.sessionUsage(ctx, sc, at.session)
			return err
		},
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		fill := func() target {
			session := must.Get(s.sessions.Create(t.Context(), core.Session{Owner: "ann", UserID: "carol"}))(t)
			s.turns(t, session.ID, 1)
			log := s.log(t, session.ID)
			if _, _, err := s.sessions.ApplyContext(t.Context(), ann(), pathChange(session, "sum", log[0], log[0])); err != nil {
				t.Fatal(err)
			}
			return target{session.ID, log[0].ID, s.accept(t, ask(session.ID, "open")).Run.ID}
		}
		unknown := target{core.NewID[core.SessionID](), core.NewID[core.MessageID](), core.NewID[core.RunID]()}
		theirs := fill()
		for name, call := range calls {
			for who, tenant := range map[string]core.Tenant{
				"another owner": bob(), "another user": {Owner: "ann", User: "dave"}, "the user of another owner": {Owner: "bob", User: "carol"}, "nobody": {},
			} {
				wantNotFound(t, name+" by "+who, call(t.Context(), s, tenant, theirs))
			}
			wantNotFound(t, name+" of nothing", call(t.Context(), s, ann(), unknown))
			wantNotFound(t, name+" of nonsense", call(t.Context(), s, ann(), target{"1' OR", "x", "y"}))
			for who, tenant := range map[string]core.Tenant{"the owner": ann(), "the user": carol()} {
				if err := call(t.Context(), s, tenant, fill()); err != nil {
					t.Errorf("%s by %s: %v", name, who, err)
				}
			}
		}
		got := s.sessionOf(t, theirs.session)
		if got.Title != "" || got.ArchivedAt != nil || got.MessageCount != 3 {
			t.Errorf("session: got %+v, want it untouched", got)
		}
	})
}
