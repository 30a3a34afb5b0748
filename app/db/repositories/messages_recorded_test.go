package repositories_test

import (
	"errors"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// Messages get the author and the time of a recording, each where it has one, and a search by
// either finds them, also if they were indexed before.
func TestSetRecorded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id, day := s.session(t).ID, time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
		var messages []core.Message
		for range 3 {
			messages = append(messages, core.Message{Role: core.RoleUser, Content: "The canoe is dry.", Author: "Cid", CreatedAt: day.AddDate(0, 0, 9)})
			for range 5 {
				messages = append(messages, core.Message{Role: core.RoleAssistant, Content: "Good.", CreatedAt: day.AddDate(0, 0, 9)})
			}
		}
		must.Do(t, repositories.Fillup(t.Context(), s.Gorm, id, messages))
		s.index(t)
		recorded := []core.Message{{Seq: 7, Author: "Ann"}, {Seq: 8}, {Seq: 13, CreatedAt: day}}
		must.Do(t, s.messages.SetRecorded(t.Context(), ann(), id, recorded))
		for question, want := range map[string]int64{"What did Ann say about the canoe?": 7, "the canoe on 10 January 2026": 13} {
			got := s.ranked(t, core.SearchQuery{Text: question, SessionID: id})
			if len(got) == 0 || got[0].Seq != want {
				t.Errorf("%s: got %v first, want message %d", question, got, want)
			}
		}
		page := must.Get(s.messages.List(t.Context(), ann(), id, core.MessageQuery{PageQuery: core.PageQuery{Limit: 50}}))(t)
		for _, m := range page.Items {
			author, at := messages[m.Seq-1].Author, messages[m.Seq-1].CreatedAt
			switch m.Seq {
			case 7:
				author = "Ann"
			case 13:
				at = day
			}
			if m.Author != author || !m.CreatedAt.Equal(at) {
				t.Errorf("message %d: got %q at %s, want %q at %s", m.Seq, m.Author, m.CreatedAt, author, at)
			}
		}
		if err := s.messages.SetRecorded(t.Context(), bob(), id, recorded); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("another owner: got %v, want %v", err, core.ErrNotFound)
		}
	})
}
