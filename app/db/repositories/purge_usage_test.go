package repositories_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// The purge of a session with calls of many days, which takes several steps, keeps what
// the days came to and leaves no name in them.
func TestUsageAfterAPurgeInSteps(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		large, small := s.session(t).ID, s.session(t).ID
		var calls []core.ModelCall
		for i := range 120 {
			c := call(day(1, 1).AddDate(0, 0, i%28))
			c.User = []string{"carol", "dave", ""}[i%3]
			calls = append(calls, c)
		}
		for id, some := range map[core.SessionID][]core.ModelCall{large: calls, small: calls[:3]} {
			run := s.accept(t, ask(id, "go")).Run
			s.write(t, core.RunWrite{RunID: run.ID, SessionID: id, Attempt: 1, ModelCalls: some, End: &core.RunEnd{Status: core.RunSucceeded}})
		}
		purges := repositories.NewPurges(d.Gorm)
		gone, err := purges.Session(t.Context(), large, false)
		if err != nil || gone.Emptied["model_calls"] != 120 {
			t.Errorf("purge: got %+v, %v, want 120 calls emptied", gone.Emptied, err)
		}
		if got, want := s.usageKeys(t, core.UsageByUser), []string{" 121", "carol 1", "dave 1"}; !cmp.Equal(got, want) {
			t.Errorf("by user: got %v, want %v", got, want)
		}
		if got, want := s.usageKeys(t, core.UsageBySession), []string{string(small) + " 3", " 120"}; !cmp.Equal(got, want) {
			t.Errorf("by session: got %v, want %v", got, want)
		}
		if n := s.count(t, "SELECT COUNT(*) FROM usage_days WHERE session_id = ? OR calls <= 0", large); n != 0 {
			t.Errorf("%d rows of the session are left", n)
		}
		must.Get(purges.User(t.Context(), "ann", "carol"))(t)
		if got, want := s.usageKeys(t, core.UsageByUser), []string{" 122", "dave 1"}; !cmp.Equal(got, want) {
			t.Errorf("by user: got %v, want %v", got, want)
		}
	})
}

// Canceling a queued run that regenerates an answer keeps the files of its question.
func TestCanceledRegenerationKeepsTheFileOfTheQuestion(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		in := ask(s.session(t).ID, "look at this")
		in.Input.Parts = []core.Part{s.upload(t, "", "a.txt", "the file").Part()}
		first := s.accept(t, in)
		again := ask(in.SessionID, "")
		again.Answers, again.Multitask = first.Message.ID, core.MultitaskInterrupt
		queued := s.accept(t, again).Run
		if _, _, err := s.runs.RequestCancel(t.Context(), ann(), queued.ID); err != nil || queued.Status != core.RunQueued {
			t.Fatalf("cancel a %s run: %v", queued.Status, err)
		}
		if swept := s.sweep(t); swept.Blobs != 0 {
			t.Errorf("swept %+v, want nothing", swept)
		}
	})
}

// The files of an import that broke off are swept.
func TestFilesOfAnAbandonedImportAreSwept(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id, file := s.session(t).ID, s.upload(t, "", "a.txt", "the file")
		list := history(300, "rope")
		list[200].Parts = []core.Part{file.Part()}
		s.beginImport(t, id, "w/1", list...)
		s.lapse(t)
		if n := s.recover(t); n != 1 {
			t.Errorf("recovered %d sessions, want 1", n)
		}
		if swept := s.sweep(t); swept.Blobs != 1 {
			t.Errorf("swept %+v, want the file", swept)
		}
	})
}

// A purge finds a request that was executed and never answered.
func TestResultsAreFoundByWhatTheyMention(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, purges := open(d), repositories.NewPurges(d.Gorm)
		_, in := s.begun(t, "POST /api/v1/sessions")
		made := must.Get(s.sessions.Create(keyedContext(t, in, "h", nil), core.Session{Owner: "ann"}))(t)
		marks := core.PurgeMarks{IDs: map[string]bool{string(made.ID): true}}
		if n, err := purges.Answers(t.Context(), marks, false); err != nil || n != 1 {
			t.Errorf("removed %d, %v, want 1", n, err)
		}
	})
}

// A page of events that refer to a long message or session is bounded by what readers get.
func TestPagesOfEventsCountWhatTheyReferTo(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		long := strings.Repeat("x", core.MaxPageBytes/3)
		for i := range 10 {
			if _, _, err := s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new(strings.Repeat("t", i+1))}); err != nil {
				t.Fatal(err)
			}
		}
		s.exec(t, "UPDATE sessions SET instructions = '"+long+"'")
		page, more, err := s.events.Page(t.Context(), id, 0, 200)
		bytes := 0
		for _, e := range page {
			bytes += len(dataText(t, e))
		}
		if err != nil || !more || bytes > core.MaxPageBytes {
			t.Errorf("got %d events of %d bytes, more %v, %v, want at most %d bytes", len(page), bytes, more, err, core.MaxPageBytes)
		}
	})
}
