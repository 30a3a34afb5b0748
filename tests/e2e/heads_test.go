package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/jwttest"
	"bobbin/tests/must"
)

// headReader follows the heads of a client's sessions.
type headReader struct {
	t      *testing.T
	events chan core.Event
}

// followHeads returns a reader after its resync: the client loads its list then.
func followHeads(t *testing.T, c *client.Client) headReader {
	t.Helper()
	r := headReader{t, make(chan core.Event, 1000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e, err := range c.WatchHeads(t.Context()) {
			if err == nil {
				r.events <- e
			}
		}
	}()
	t.Cleanup(func() { <-done })
	if e := r.next(); e.Type != core.EventResync || e.SessionID != "" {
		t.Fatalf("got %s first, want a resync", e.Type)
	}
	return r
}

func (r headReader) next() core.Event {
	r.t.Helper()
	select {
	case e := <-r.events:
		return e
	case <-time.After(30 * time.Second):
		r.t.Fatal("no head in 30 s")
		return core.Event{}
	}
}

// await reads until a head of the session is as wanted.
func (r headReader) await(what string, id core.SessionID, is func(core.SessionHead) bool) {
	r.t.Helper()
	var seen []string
	for {
		e := r.next()
		head, _ := e.Data.(core.SessionHead)
		if _, removed := e.Data.(core.RemovedHead); e.SessionID == id && (removed && is == nil || !removed && is != nil && is(head)) {
			return
		}
		if seen = append(seen, fmt.Sprintf("%s %+v", e.SessionID, e.Data)); len(seen) > 50 {
			r.t.Fatalf("%s: got %q", what, seen)
		}
	}
}

// A list of sessions follows what happens in all of them: it needs no other request after the
// first one.
func TestHeads(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		h := apptest.NewAsking(t, url)
		r := followHeads(t, h.Client)
		id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "careful", Title: "Sums"})
		r.await("created", id, func(s core.SessionHead) bool {
			return s.Title == "Sums" && s.Agent == "careful" && s.Status == core.SessionIdle
		})
		run := asksIn(t, h, id, "calculator")
		r.await("waiting", id, func(s core.SessionHead) bool {
			w := s.Waiting
			return s.Status == core.SessionWaiting && w != nil && w.RunID == run.ID && w.ApprovalID == run.Approvals[0].ID && w.Tool == run.Approvals[0].Tool
		})
		decide(t, h, run, ops.Decision{Decision: "approve"})
		done, _ := ended(t, h, run.ID)
		r.await(string(done.Status), id, func(s core.SessionHead) bool {
			return s.Status == core.SessionIdle && s.Waiting == nil && s.MessageCount >= 4 && s.LastEvent > 0
		})
		must.Get(client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: id}, SessionPatch: core.SessionPatch{Archived: new(true)}}))(t)
		r.await("archived", id, func(s core.SessionHead) bool { return s.Archived })
		must.Get(client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: id}, SessionPatch: core.SessionPatch{Archived: new(false)}}))(t)
		r.await("brought back", id, func(s core.SessionHead) bool { return !s.Archived })
		fork := must.Get(client.Call(t.Context(), h, ops.ForkSession, core.ForkSession{SessionID: id}))(t)
		r.await("forked", fork.ID, func(s core.SessionHead) bool { return s.Title == "Sums (fork)" })
		if d, err := client.Call(t.Context(), h, ops.CreateDeletion, ops.NewDeletion{SessionID: id}); err != nil {
			t.Fatal(err)
		} else if _, err := apptest.AwaitDeletion(t.Context(), h, d.ID); err != nil {
			t.Fatal(err)
		}
		r.await("removed", id, nil)
	})
}

// Users see the heads of their own sessions, their backend those of all.
func TestHeadsOfUsers(t *testing.T) {
	t.Parallel()
	s := jwttest.NewSigner(t, "k", "EdDSA")
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), withTokens(jwttest.Serve(t, s)))
	kim, eve := h.NewClient(s.User(t, "kim")), h.NewClient(s.User(t, "eve"))
	ofShop, ofEve := followHeads(t, h.NewClient("configured-secret")), followHeads(t, eve)
	kims := apptest.NewSession(t, kim, ops.NewSession{})
	ofShop.await("kim's", kims, func(s core.SessionHead) bool { return s.UserID == "kim" })
	eves := apptest.NewSession(t, eve, ops.NewSession{})
	ofShop.await("eve's", eves, func(s core.SessionHead) bool { return s.UserID == "eve" })
	if e := ofEve.next(); e.SessionID != eves {
		t.Errorf("eve got a head of session %s, want her own first", e.SessionID)
	}
}
