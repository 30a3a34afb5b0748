package repositories_test

import (
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
)

// Of messages that fit equally well, those by a person whom the question names come first, and
// those of a day that it names.
func TestRankedSearchByMentions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id, day := s.session(t).ID, time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
		messages := []core.Message{}
		for i, author := range []string{"", "Ann", "Ben", "Cid"} {
			messages = append(messages, core.Message{Role: core.RoleUser, Content: "The canoe is dry.", Author: author, CreatedAt: day.AddDate(0, 0, 3*i)})
			for range 5 {
				messages = append(messages, core.Message{Role: core.RoleUser, Content: "Good.", Author: author, CreatedAt: day.AddDate(0, 0, 3*i)})
			}
		}
		if err := repositories.Fillup(t.Context(), s.Gorm, id, messages); err != nil {
			t.Fatal(err)
		}
		for question, want := range map[string]int64{
			"the canoe":                           19, // the newest of equals
			"What did Ann say about the canoe?":   7,
			"Ben's canoe":                         13,
			"the canoe on 19 January 2026":        19,
			"Ann's canoe on January 13, 2026":     7,
			"Was sagte Cid am 19. Januar 2026 zu": 19,
		} {
			if got := s.ranked(t, core.SearchQuery{Text: question + " canoe", SessionID: id}); len(got) == 0 || got[0].Seq != want {
				t.Errorf("%s: got %v first, want message %d", question, got, want)
			}
		}
	})
}
