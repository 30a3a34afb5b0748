package repositories_test

import (
	"slices"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// An alias names one session of its owner, however many open it concurrently.
func TestAliasOpen(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		aliases := repositories.NewAliases(d.Gorm)
		thread := core.Alias{Surface: core.SourceSlack, Name: "T1/C1/1.2"}
		ids := make([]core.SessionID, racers)
		race(racers, func(i int) {
			s, err := aliases.Open(t.Context(), thread, core.Session{Owner: "ann", Agent: "tester", Title: "the pump"})
			compare.Error(t, "open", nil, err)
			ids[i] = s.ID
		})
		must.True(t, ids[0] != "" && len(slices.Compact(slices.Clone(ids))) == 1, "got the sessions %v, want one", ids)
		all, err := repositories.NewSessions(d.Gorm).List(t.Context(), ann(), core.SessionQuery{})
		compare.True(t, err == nil && len(all.Items) == 1, "got %d sessions (%v), want one", len(all.Items), err)
		for name, other := range map[string]struct {
			owner string
			alias core.Alias
		}{
			"another owner":   {"eve", thread},
			"another thread":  {"ann", core.Alias{Surface: core.SourceSlack, Name: "T1/C1/3.4"}},
			"another surface": {"ann", core.Alias{Surface: core.SourceAPI, Name: thread.Name}},
		} {
			s := must.Get(aliases.Open(t.Context(), other.alias, core.Session{Owner: other.owner, Agent: "tester"}))(t)
			compare.True(t, s.ID != ids[0], "%s: got session %s, want a new session", name, s.ID)
		}
	})
}

// An alias moves only from the session that it belongs to, and is removed with it.
func TestAliasRebind(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		aliases, s := repositories.NewAliases(d.Gorm), open(d)
		thread := core.Alias{Surface: core.SourceSlack, Name: "T1/C1/1.2"}
		first := must.Get(aliases.Open(t.Context(), thread, core.Session{Owner: "ann", Agent: "tester"}))(t)
		second := s.session(t)
		compare.Error(t, "another owner", core.ErrStale, aliases.Rebind(t.Context(), "eve", thread, first.ID, second.ID))
		must.Do(t, aliases.Rebind(t.Context(), "ann", thread, first.ID, second.ID))
		compare.Error(t, "the second time", core.ErrStale, aliases.Rebind(t.Context(), "ann", thread, first.ID, second.ID))
		compare.Equal(t, "got.ID", second.ID, must.Get(aliases.Open(t.Context(), thread, core.Session{Owner: "ann", Agent: "tester"}))(t).ID)
		must.Get(repositories.NewPurges(d.Gorm).Session(t.Context(), second.ID, false))(t)
		got := must.Get(aliases.Open(t.Context(), thread, core.Session{Owner: "ann", Agent: "tester"}))(t)
		compare.True(t, got.ID != second.ID, "after the purge: got session %s, want a new session", got.ID)
	})
}
