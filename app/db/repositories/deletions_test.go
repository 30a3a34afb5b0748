package repositories_test

import (
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// userDeletion is the deletion of a user of ann's.
func userDeletion(user string) core.Deletion {
	return core.Deletion{ID: core.NewID[core.DeletionID](), Owner: "ann", Kind: core.DeleteUser, User: user, UserHash: core.SecretHash(user), Actor: "api:web", CreatedAt: core.Now()}
}

// One process executes a deletion, and another one after the lease of the first has
// expired; the user's name is cleared when it is finished.
func TestDeletions(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		ctx, deletions := t.Context(), repositories.NewDeletions(s.Gorm)
		first := must.Get(deletions.Create(ctx, userDeletion("carol")))(t)
		again := must.Get(deletions.Create(ctx, userDeletion("carol")))(t)
		compare.Equal(t, "accepted again: want the first one", []any{first.ID, core.DeletionPending}, []any{again.ID, again.Status})
		compare.Error(t, "the user's own deletion", nil, compare.ErrorOf(deletions.Get(ctx, carol(), first.ID)))
		for _, other := range []core.Tenant{bob(), {Owner: "ann", User: "dave"}} {
			_, err := deletions.Get(ctx, other, first.ID)
			wantNotFound(t, "another's deletion", err)
		}

		job, err := deletions.Claim(ctx, "one/1")
		if err != nil || job.ID != first.ID || job.User != "carol" || job.Attempts != 1 || job.Status != core.DeletionRunning {
			t.Fatalf("claimed: %+v, %v", job, err)
		}
		_, err = deletions.Claim(ctx, "two/1")
		wantNotFound(t, "a second claim", err)
		job.Plan, job.RowsTotal = &core.DeletionPlan{Sessions: []core.SessionID{"a"}}, 7
		must.Do(t, deletions.SavePlan(ctx, job))
		later, err := deletions.Claim(ctx, "one/2") // the same replica, started again
		if err != nil || later.Attempts != 2 || later.RowsTotal != 7 || later.Plan == nil || later.Plan.Sessions[0] != "a" {
			t.Errorf("after a restart: %+v, %v", later, err)
		}
		wantError(t, "renew a lease that was lost", deletions.Renew(ctx, job), core.ErrStale)
		later.Error = "the disk is full"
		must.Do(t, deletions.Retry(ctx, later, time.Minute))
		_, err = deletions.Claim(ctx, "two/1")
		wantNotFound(t, "a claim before its time", err)
		waits := must.Get(deletions.Get(ctx, ann(), first.ID))(t)
		compare.Equal(t, "waiting", []any{"the disk is full", core.DeletionPending}, []any{waits.Error, waits.Status})
		s.exec(t, "UPDATE deletions SET due_at = '2000-01-01 00:00:00+00:00'")
		last, err := deletions.Claim(ctx, "two/1")
		if err != nil || last.Attempts != 3 {
			t.Fatalf("claimed when it is due: %+v, %v", last, err)
		}
		last.Report = &core.PurgeReport{Sessions: []core.SessionID{}, Tables: []core.PurgedTable{{Table: "messages", Removed: 7}}, Notes: []string{}}
		must.Do(t, deletions.Finish(ctx, last))
		done, err := deletions.Get(ctx, carol(), first.ID)
		if err != nil || done.Status != core.DeletionSucceeded || done.User != "" || done.Plan != nil || done.Error != "" || done.Report.Tables[0].Removed != 7 {
			t.Errorf("done: %+v, %v", done, err)
		}
		if next, err := deletions.Create(ctx, userDeletion("carol")); err != nil || next.ID == first.ID {
			t.Errorf("accepted after the first is done: %+v, %v, want a new one", next, err)
		}
		s.exec(t, "UPDATE deletions SET finished_at = '2020-01-01 00:00:00+00:00' WHERE finished_at IS NOT NULL")
		must.Do(t, deletions.Sweep(ctx, time.Hour))
		_, err = deletions.Get(ctx, ann(), first.ID)
		wantNotFound(t, "one that was done long ago", err)
	})
}
