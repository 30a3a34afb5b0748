package repositories_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
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
		if diff := cmp.Diff(got.Events, s.allEvents(t, session.ID), asRead()); diff != "" {
			t.Errorf("events (-returned +stored):\n%s", diff)
		}
	})
}

func TestAcceptQueuesBehindAnActiveRun(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		session := s.session(t)
		first := s.accept(t, ask(session.ID, "one"))
		second := s.accept(t, ask(session.ID, "two"))

		if second.Run.Status != core.RunQueued || second.Run.Attempt != 0 || second.Run.QueueSeq != 2 || second.Run.LeaseUntil != nil {
			t.Errorf("run: got %+v, want queued without a lease, queue_seq 2", second.Run)
		}
		if second.Message.Seq != 0 || second.Message.ID != second.Run.UserMessageID || second.Message.Content != "two" {
			t.Errorf("message: got %+v, want the question, not in the log yet", second.Message)
		}
		if diff := cmp.Diff([]core.EventType{core.EventRunQueued}, types(second.Events)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if got := decode[core.MessageData](t, second.Events[0]).Message; got.ID != second.Run.UserMessageID {
			t.Errorf("run.queued tells of message %s, want %s", got.ID, second.Run.UserMessageID)
		}
		if got := len(s.log(t, session.ID)); got != 1 {
			t.Errorf("log: got %d messages, want 1: the second waits for its turn", got)
		}
		pending, err := s.runs.Pending(t.Context(), ann(), session.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]core.Run{second.Run}, pending); diff != "" {
			t.Errorf("pending (-want +got):\n%s", diff)
		}
		active, err := s.runs.Active(t.Context(), ann(), session.ID)
		if err != nil || active.ID != first.Run.ID {
			t.Errorf("active: got %s, %v, want %s", active.ID, err, first.Run.ID)
		}
	})
}

func TestAcceptRefuses(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		busy := s.session(t).ID
		s.accept(t, ask(busy, "one"))
		second := ask(busy, "two")
		second.User = "eve"
		s.accept(t, second)
		idle, archived := s.session(t).ID, s.session(t).ID
		if err := s.archive(t.Context(), ann(), archived); err != nil {
			t.Fatal(err)
		}
		taken := s.session(t).ID
		s.finish(t, s.accept(t, ask(taken, "one")).Run, "two")
		// What a plain append will leave: a message with a key and without a run.
		s.exec(t, "UPDATE messages SET run_id = NULL, client_message_id = 'c-9' WHERE session_id = ? AND seq = 1", taken)

		tests := []struct {
			name    string
			session core.SessionID
			change  func(*core.AcceptRun)
			want    error
		}{
			{"archived session", archived, func(*core.AcceptRun) {}, core.ErrConflict},
			{"reject while busy", busy, func(in *core.AcceptRun) { in.Multitask = core.MultitaskReject }, core.ErrConflict},
			{"too many of the owner", core.SessionID(""), func(in *core.AcceptRun) { in.SessionID, in.MaxOwned = idle, 2 }, core.ErrRateLimited},
			{"too many of the user", idle, func(in *core.AcceptRun) { in.User, in.MaxOfUser = "eve", 1 }, core.ErrRateLimited},
			{"full queue", busy, func(in *core.AcceptRun) { in.MaxQueued = 1 }, core.ErrRateLimited},
			{"key of another message", taken, func(in *core.AcceptRun) { in.ClientMessageID = "c-9" }, core.ErrConflict},
			{"NUL in the text", busy, func(in *core.AcceptRun) { in.Input.Content = "a\x00b" }, core.ErrInvalid},
			{"NUL in the key", busy, func(in *core.AcceptRun) { in.ClientMessageID = "a\x00b" }, core.ErrInvalid},
			{"unknown session", core.NewID[core.SessionID](), func(*core.AcceptRun) {}, core.ErrNotFound},
			{"no id at all", "nonsense", func(*core.AcceptRun) {}, core.ErrNotFound},
		}
		before := s.count(t, "SELECT COUNT(*) FROM runs")
		for _, tt := range tests {
			in := ask(tt.session, "refuse me")
			tt.change(&in)
			_, err := s.runs.Accept(t.Context(), ann(), in)
			wantError(t, tt.name, err, tt.want)
		}
		if got := s.count(t, "SELECT COUNT(*) FROM runs"); got != before {
			t.Errorf("runs: got %d, want still %d", got, before)
		}
		in := ask(busy, "three")
		in.MaxQueued = 2
		s.accept(t, in) // one is queued, two are allowed
		in = ask(idle, "four")
		in.MaxOwned, in.User, in.MaxOfUser = 4, "kim", 1
		s.accept(t, in) // three are at work or queued; those that have ended do not count
	})
}
