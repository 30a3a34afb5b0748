package repositories_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/golden"
	"bobbin/tests/must"
)

// ranked returns the first results of a ranked search.
func (s *store) ranked(t testing.TB, q core.SearchQuery) []core.SearchHit {
	t.Helper()
	q.Sort = core.SortRelevance
	return s.search(t, ann(), q).Items
}

// questions are asked beside corpusQueries.
func questions() []string {
	return append(corpusQueries(), "What did the inspectors say about the pressures of the valve?", "Wer hat die Rechnungen geprüft?", "who lost invoices on Monday", "the of and",
		`zebra "pump"`, "getUserById ERR_CONN_RESET zebras", "紫色的大象在哪里", "pump -the")
}

// The order and the scores of a ranked search are the same on both databases, where all
// entries are read and where few are.
func TestSearchRanksTheSame(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		s.fill(t, 800)
		var b strings.Builder
		for _, text := range questions() {
			for name, search := range []*repositories.Search{repositories.NewSearch(s.Gorm), repositories.NewSmallSearch(s.Gorm)} {
				page, err := search.Messages(t.Context(), ann(), core.SearchQuery{Text: text, PageQuery: core.PageQuery{Limit: 7}})
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				fmt.Fprintf(&b, "%s\n  %s: %d:", text, []string{"all", "few"}[name], page.Total)
				for _, h := range page.Items {
					fmt.Fprintf(&b, " %s#%d %.3f", h.SessionTitle, h.Seq, h.Score)
				}
				if b.WriteString("\n"); len(page.Items) > 0 {
					fmt.Fprintf(&b, "    %s\n", marked(page.Items[0]))
				}
			}
		}
		golden.Check(t, "testdata/search_ranked.golden", b.String())
	})
}

// Words are optional, the rare ones count more, stems and neighbors count; what is in quotes
// must be there and -words must not; among equals the newest is first.
func TestSearchRanking(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		texts := []string{
			"Hello there", "My sister Clara lives in Turku", "Nice!", "She keeps seven canoes", "The weather is bad", "It rains a lot", "Really bad", "I know",
			"We repaired the pump in the hall", "And then?", "Pumps need seals", "Of course", "The seal came late", "ok", "Die Pumpen haben Dichtungen", "gut", "same words", "x", "y", "z", "same words",
		}
		var messages []core.Message
		for i, text := range texts {
			messages = append(messages, core.Message{Role: []core.Role{core.RoleUser, core.RoleAssistant}[i%2], Content: text, Author: []string{"Ann", "Ben"}[i/8%2]})
		}
		must.Do(t, repositories.Fillup(t.Context(), s.Gorm, id, messages))
		for _, tt := range []struct {
			name  string
			q     core.SearchQuery
			first []int64
		}{
			{"a question", core.SearchQuery{Text: "How many canoes does the sister of Ann have?"}, []int64{2, 4}},
			{"beside two words", core.SearchQuery{Text: "sister canoes"}, []int64{2, 4, 3}},
			{"stems", core.SearchQuery{Text: "pump"}, []int64{9, 11, 15}},
			{"German", core.SearchQuery{Text: "Pumpe Dichtung"}, []int64{15}},
			{"a phrase", core.SearchQuery{Text: `canoes "is bad"`}, []int64{5}},
			{"not", core.SearchQuery{Text: "bad -rains -really"}, []int64{5}},
			{"a role", core.SearchQuery{Text: "canoes pump", Role: core.RoleAssistant}, []int64{4}},
			{"an author", core.SearchQuery{Text: "pump", Author: "Ben"}, []int64{9, 11, 15}},
			{"nobody", core.SearchQuery{Text: "pump", Author: "Cid"}, nil},
			{"equals", core.SearchQuery{Text: "same words"}, []int64{21, 17}},
			{"another agent", core.SearchQuery{Text: "pump", Agent: "other"}, nil},
			{"later", core.SearchQuery{Text: "pump", After: time.Now().Add(time.Hour)}, nil},
			{"stop words", core.SearchQuery{Text: "of the"}, []int64{12}},
		} {
			for scope, session := range map[string]core.SessionID{"session": id, "owner": ""} {
				tt.q.SessionID = session
				var got []int64
				for _, h := range s.ranked(t, tt.q) {
					got = append(got, h.Seq)
				}
				if len(got) < len(tt.first) || tt.first == nil && len(got) > 0 || !slices.Equal(got[:len(tt.first)], tt.first) {
					t.Errorf("%s in the %s: got %v, want %v first", tt.name, scope, got, tt.first)
				}
			}
		}
	})
}

// Pages of a ranked search neither repeat nor omit anything while messages come in, wherever
// the entries are chosen.
func TestRankedPagesAreStable(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		add := func(n int, text string) {
			t.Helper()
			var messages []core.Message
			for i := range n {
				messages = append(messages, core.Message{Role: core.RoleUser, Content: fmt.Sprintf(text, i%7, i)})
			}
			must.Do(t, repositories.Fillup(t.Context(), s.Gorm, id, messages))
		}
		add(200, "valve%d and pump%d")
		for name, search := range map[string]*repositories.Search{"all": repositories.NewSearch(s.Gorm), "few": repositories.NewSmallSearch(s.Gorm)} {
			read := func(limit int, then func()) []core.MessageID {
				var got []core.MessageID
				for q := (core.SearchQuery{Text: "valve3 valve5 pump7", PageQuery: core.PageQuery{Limit: limit}}); ; then() {
					page := must.Get(search.Messages(t.Context(), ann(), q))(t)
					for _, h := range page.Items {
						got = append(got, h.MessageID)
					}
					if page.NextCursor == nil {
						return got
					}
					q.Cursor = *page.NextCursor
				}
			}
			whole := read(200, func() {})
			paged := read(6, func() { add(3, "valve%d is new, pump%d") })
			if diff := cmp.Diff(whole, paged); diff != "" || len(whole) < 12 {
				t.Errorf("%s: %d results (-one page +pages):\n%s", name, len(whole), diff)
			}
		}
	})
}
