package repositories_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/dbtest"
)

func TestAcceptStartsARunInAnIdleSession(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		session := s.session(t)
		in := ask(session.ID, "hello")
		in.User, in.ClientMessageID = "dora", "c-1"
		got := s.accept(t, in)

		if got.Run.Status != core.RunRunning || got.Run.Attempt != 1 || got.Run.QueueSeq != 1 || got.Run.LeaseOwner != worker {
			t.Errorf("run: got %+v, want running, attempt 1, queue_seq 1, leased to %s", got.Run, worker)
		}
		if got.Repeated {
			t.Error("repeated: got true, want false")
		}
		if got.Message.Seq != 1 || got.Message.ID != got.Run.UserMessageID || got.Message.Content != "hello" || got.Message.RunID != got.Run.ID {
			t.Errorf("message: got %+v, want the question with seq 1", got.Message)
		}
		if diff := cmp.Diff([]core.EventType{core.EventRunStarted, core.EventMessageCreated}, types(got.Events)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		stored, err := s.runs.Get(t.Context(), ann(), got.Run.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got.Run, stored); diff != "" {
			t.Errorf("run as returned and as stored (-returned +stored):\n%s", diff)
		}
		if diff := cmp.Diff([]core.Message{got.Message}, s.log(t, session.ID)); diff != "" {
			t.Errorf("log (-returned +stored):\n%s", diff)
		}
		now, err := s.sessions.Get(t.Context(), ann(), session.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got.Session, now); diff != "" {
			t.Errorf("session as returned and as stored (-returned +stored):\n%s", diff)
		}
		if now.MessageCount != 1 || now.LastSeq != 1 || now.LastEventSeq != 2 || now.UpdatedAt.Before(session.UpdatedAt) {
			t.Errorf("session: got %+v, want 1 message and 2 events", now)
		}
		if diff := cmp.Diff(got.Events, s.allEvents(t, session.ID), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("events (-returned +stored):\n%s", diff)
		}
	})
}
