package repositories_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
)

// copies counts how often a text is stored, by table.
func (s *store) copies(t *testing.T, text string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for table, column := range map[string]string{"messages": "content", "runs": "CAST(input AS text)", "session_events": "CAST(data AS text)"} {
		if n := s.count(t, "SELECT COUNT(*) FROM "+table+" WHERE "+column+" LIKE ?", "%"+text+"%"); n > 0 {
			found[table] = n
		}
	}
	return found
}

// A question and its answer are stored in the log only, however many events contain them,
// and readers get them from there.
func TestMessagesAreStoredOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		const question, answered = "why is the sky blue", "because of its air"
		first := s.accept(t, ask(id, "before"))
		queued := s.accept(t, ask(id, question))
		if got, want := s.copies(t, question), map[string]int{"runs": 1}; !cmp.Equal(got, want) {
			t.Errorf("queued: got it in %v, want %v", got, want)
		}
		s.finish(t, first.Run, "done")
		claimed := s.claim(t, id)
		if claimed.Run.ID != queued.Run.ID || claimed.Run.Input.Content != question || claimed.Message.Content != question {
			t.Errorf("claimed: got %+v and %+v, want the question", claimed.Run.Input, claimed.Message)
		}
		s.finish(t, claimed.Run, answered)
		if _, _, err := repositories.NewBranches(d.Gorm).Pin(t.Context(), ann(), id, claimed.Message.ID, true); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{question, answered} {
			if got, want := s.copies(t, text), map[string]int{"messages": 1}; !cmp.Equal(got, want) {
				t.Errorf("%q: got it in %v, want %v", text, got, want)
			}
		}

		log := map[core.MessageID]core.Message{}
		for _, m := range s.log(t, id) {
			log[m.ID] = m
		}
		for _, e := range s.allEvents(t, id) {
			switch e.Type {
			case core.EventMessageCreated, core.EventMessageUpdated:
				m := decode[core.MessageData](t, e).Message
				if diff := cmp.Diff(log[m.ID], m); diff != "" {
					t.Errorf("%s (-want +got):\n%s", e.Type, diff)
				}
			case core.EventRunQueued:
				if m := decode[core.MessageData](t, e).Message; m.Content != question || m.ID != claimed.Run.UserMessageID || m.Seq != 0 || m.ParentID != "" {
					t.Errorf("run.queued has %+v, want the question without a place in the log", m)
				}
			case core.EventRunStarted, core.EventRunSucceeded:
				if in := decode[core.RunData](t, e).Run.Input; in.Content != "" || in.Source == "" {
					t.Errorf("%s: got the input %+v, want it without content", e.Type, in)
				}
			}
		}
		runs, err := s.runs.List(t.Context(), ann(), id, core.PageQuery{})
		if err != nil || runs.Items[0].Input.Content != question || runs.Items[0].Input.TokenCount != 7 {
			t.Errorf("list: got %+v, %v, want the question", runs.Items[0].Input, err)
		}
		if got := s.run(t, claimed.Run.ID).Input; got.Content != question {
			t.Errorf("get: got %+v, want the question", got)
		}
	})
}

// A run that another process takes over knows its question.
func TestTakenOverRunsHaveTheirQuestions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		run := s.accept(t, ask(s.session(t).ID, "go on")).Run
		s.expire(t)
		runs, err := s.takeOver(t.Context(), "w2", true, 10)
		if err != nil || len(runs) != 1 || runs[0].ID != run.ID || runs[0].Input.Content != "go on" {
			t.Errorf("got %+v, %v, want the run with its question", runs, err)
		}
	})
}

// session.updated contains the session as it is when the event is read: no event contains a
// summary that covered a deleted message.
func TestSessionEventsReferToTheSession(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		for _, title := range []string{"a title with " + secret, "another"} {
			if _, events, err := s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new(title)}); err != nil || decode[core.SessionData](t, events[0]).Session.Title != title {
				t.Fatalf("update: %v, want %q told", err, title)
			}
		}
		if n := s.copies(t, secret)["session_events"]; n != 0 {
			t.Errorf("got the title in %d events", n)
		}
		for _, e := range s.allEvents(t, id) {
			if got := decode[core.SessionData](t, e).Session; got.ID != id || got.Title != "another" {
				t.Errorf("got %+v, want the session as it is", got)
			}
		}
	})
}

// An event of a newer version is read as it is stored.
func TestEventOfANewerVersion(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.accept(t, ask(id, "hello"))
		s.exec(t, `UPDATE session_events SET type = 'run.paused', data = '{"until": ["noon"]}' WHERE session_id = ? AND event_seq = 1`, id)
		s.exec(t, `UPDATE session_events SET data = '{"message": "m1"}' WHERE session_id = ? AND event_seq = 2`, id)
		all := s.allEvents(t, id)
		if got := dataText(t, all[0]); got != `{"until":["noon"]}` || all[0].Type != "run.paused" {
			t.Errorf("got %s %s, want the event as it is stored", all[0].Type, got)
		}
		if got := dataText(t, all[1]); got != `{"message":"m1"}` {
			t.Errorf("got %s, want the data as they are stored", got)
		}
	})
}
