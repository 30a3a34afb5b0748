package repositories_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
)

// canceledInQueue accepts the secret with a file behind another run, and cancels it.
func (s *store) canceledInQueue(t *testing.T) (session core.SessionID, unsent core.Run, file core.Blob) {
	t.Helper()
	session = s.session(t).ID
	first := s.accept(t, ask(session, "one")).Run
	file = s.upload(t, "", "a.txt", "the file")
	in := ask(session, "it is "+secret)
	in.Input.Parts = []core.Part{file.Part()}
	unsent = s.accept(t, in).Run
	if s.sweep(t).Blobs != 0 {
		t.Error("the file of a queued message was swept")
	}
	canceled, events, err := s.runs.RequestCancel(t.Context(), ann(), unsent.ID)
	if err != nil || canceled.Input.Content != in.Input.Content || strings.Contains(dataText(t, events[0]), secret) {
		t.Fatalf("cancel: got %+v, %v, %v", canceled.Input, events[0].Data, err)
	}
	s.finish(t, first, "answer")
	return session, unsent, file
}

// Deleting a message that was canceled while it was queued removes it completely.
func TestDeleteAMessageThatWasCanceledInTheQueue(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		branches := repositories.NewBranches(d.Gorm)
		session, unsent, file := s.canceledInQueue(t)
		queued := decode[core.MessageData](t, s.allEvents(t, session)[2]).Message
		if queued.ID != unsent.UserMessageID || !strings.Contains(queued.Content, secret) || queued.Seq != 0 {
			t.Errorf("run.queued has %+v, want the message", queued)
		}
		s.accept(t, ask(session, "another run does not matter"))
		events, err := branches.Delete(t.Context(), ann(), session, unsent.UserMessageID)
		if err != nil || len(events) != 1 || events[0].Type != core.EventMessageUpdated {
			t.Fatalf("delete: got %v, %v, want message.updated", types(events), err)
		}
		if hits := s.remains(t); len(hits) > 0 {
			t.Errorf("the secret is still in %v", hits)
		}
		for _, e := range append(s.allEvents(t, session), events...) {
			if strings.Contains(dataText(t, e), secret) {
				t.Errorf("%s still has the secret", e.Type)
			}
		}
		for _, i := range []int{2, len(s.allEvents(t, session)) - 1} {
			if m := decode[core.MessageData](t, s.allEvents(t, session)[i]).Message; m.ID != queued.ID || m.DeletedAt == nil {
				t.Errorf("event %d: got %+v, want the message deleted", i, m)
			}
		}
		run, err := s.runs.Get(t.Context(), ann(), unsent.ID)
		if err != nil || run.Input.DeletedAt == nil || !run.Input.Empty() {
			t.Errorf("run: got %+v, %v, want it without its message", run.Input, err)
		}
		_, err = s.blobs.Get(t.Context(), ann(), file.ID)
		if swept := s.sweep(t); swept.Blobs != 1 {
			t.Errorf("swept %+v (%v), want the file", swept, err)
		}
		again, err := branches.Delete(t.Context(), ann(), session, unsent.UserMessageID)
		if err != nil || len(again) != 0 {
			t.Errorf("again: got %v, %v, want nothing", types(again), err)
		}
		_, err = branches.Delete(t.Context(), bob(), session, unsent.UserMessageID)
		wantNotFound(t, "another's", err)
		_, err = branches.Delete(t.Context(), ann(), s.session(t).ID, unsent.UserMessageID)
		wantNotFound(t, "in another session", err)
	})
}

// The file of such a message is swept even if the message is not deleted, and does not
// count against the quota then; a message that is still queued cannot be deleted.
func TestCanceledMessageLetsItsFileGo(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		session, unsent, file := s.canceledInQueue(t)
		if swept := s.sweep(t); swept.Blobs != 1 || s.count(t, "SELECT COUNT(*) FROM blob_contents") != 0 {
			t.Errorf("swept %+v, want the file and its content", swept)
		}
		_, err := s.blobs.Get(t.Context(), ann(), file.ID)
		wantNotFound(t, "the file", err)
		if _, err := repositories.NewBranches(d.Gorm).Delete(t.Context(), ann(), session, unsent.UserMessageID); err != nil {
			t.Errorf("delete without the file: %v", err)
		}
		s.accept(t, ask(session, "at work"))
		waits := s.accept(t, ask(session, "in the queue")).Run
		_, err = repositories.NewBranches(d.Gorm).Delete(t.Context(), ann(), session, waits.UserMessageID)
		wantError(t, "delete what waits", err, core.ErrConflict)
	})
}
