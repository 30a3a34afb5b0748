package chat_test

import (
	"testing"
	"testing/synctest"

	"bobbin/app/core"
	"bobbin/tests/must"
)

// Stop ends the run at work and nothing else: the next message of the queue is answered. A
// session without a run is left as it is.
func TestStop(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, talkUntilCanceled)
		if err := h.Stop(t.Context(), ann, h.session.ID); err != nil {
			t.Errorf("no run: got error %v, want none", err)
		}
		long := h.send(t, "long")
		synctest.Wait()
		queued := h.send(t, "queued")
		wantKind(t, h.Stop(t.Context(), core.Tenant{Owner: "eve"}, h.session.ID), core.ErrNotFound)
		must.Do(t, h.Stop(t.Context(), ann, h.session.ID))
		if run, err := h.Wait(t.Context(), ann, long.Run.ID); err != nil || run.Status != core.RunCanceled {
			t.Errorf("got run %s and error %v, want it canceled", run.Status, err)
		}
		synctest.Wait()
		if run, err := h.Wait(t.Context(), ann, queued.Run.ID); err != nil || run.Status != core.RunSucceeded {
			t.Errorf("got the queued run %s and error %v, want it to have succeeded", run.Status, err)
		}
	})
}

// A surface says who decides; else it is the caller.
func TestDecideBy(t *testing.T) {
	for by, want := range map[string]string{"slack:T1/U1": "slack:T1/U1", "": ann.Owner} {
		t.Run(by, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				h := newHouse(t, 0, waiting)
				a := h.asked(t)
				a, err := h.Decide(t.Context(), ann, a.RunID, a.ID, core.ApprovalDecision{Approve: true, By: by})
				if err != nil || a.DecidedBy != want {
					t.Errorf("got %q and error %v, want %q", a.DecidedBy, err, want)
				}
				if _, err := h.Wait(t.Context(), ann, a.RunID); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
