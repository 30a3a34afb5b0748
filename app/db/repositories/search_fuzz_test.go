package repositories_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// Random queries of whatever people and programs write: no error but ErrInvalid, and never a
// text of another owner. BOBBIN_TEST_LONG asks 20,000.
func TestSearchFuzz(t *testing.T) {
	t.Parallel()
	asked := 100
	if seed.IsChosen() {
		asked = 300
	}
	if os.Getenv("BOBBIN_TEST_LONG") != "" {
		asked = 20_000
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		pieces := strings.Split(`pump|the pump|水泵|"|"the|-|-valve|*|pu*|%_*:^()|\|'|🎉|ERR_CONN|getUserById|a.b.c|NEAR(|AND|OR|NOT|é|`+"\x00|\xff|\u200d|"+`ß|Pumpen|don't|1 2 3|'; DROP|:*|<->|!|&|words :|_w|_o|`, "|")
		r := seed.Rand(t, 16)
		write := func(n int) string {
			var b strings.Builder
			for range 1 + r.IntN(n) {
				b.WriteString(pieces[r.IntN(len(pieces))])
				b.WriteString([]string{" ", "", "_"}[r.IntN(3)])
			}
			return b.String()
		}
		for _, owner := range []string{"ann", "bob"} {
			session := must.Get(s.sessions.Create(t.Context(), core.Session{Owner: owner, Title: owner}))(t)
			messages := []core.Message{{Role: core.RoleUser, Content: strings.Repeat("pump", 50_000)}, {Role: core.RoleUser, Content: strings.Repeat("pump the ", 20_000)}}
			for range 120 {
				messages = append(messages, core.Message{Role: core.RoleUser, Content: owner + " " + strings.ToValidUTF8(strings.ReplaceAll(write(12), "\x00", ""), "")})
			}
			must.Do(t, repositories.Fillup(t.Context(), s.Gorm, session.ID, messages))
		}
		refused, found, failed, foreign := 0, 0, 0, 0
		searches := []*repositories.Search{repositories.NewSearch(s.Gorm), repositories.NewSmallSearch(s.Gorm)}
		for i := range asked {
			if i == asked/2 {
				s.index(t)
			}
			q := core.SearchQuery{Text: write(8), PageQuery: core.PageQuery{Limit: 5}, Around: i % 3}
			if i%50 == 7 {
				q.Text = strings.Repeat(write(20), 60)
			}
			if i%9 == 1 && i > asked/2 {
				q.Sort = core.SortNewest
			}
			owner, other := ann(), bob()
			if i/2%2 == 1 {
				owner, other = other, owner
			}
			page, err := searches[i%2].Messages(t.Context(), owner, q)
			switch {
			case errors.Is(err, core.ErrInvalid):
				refused++
			case err != nil:
				failed++
				t.Errorf("%q: %v", q.Text, err)
			}
			for _, h := range page.Items {
				if text := fmt.Sprint(h); h.SessionTitle != owner.Owner || strings.Contains(text, other.Owner+" ") {
					foreign++
					t.Errorf("%q of %s: got %s", q.Text, owner.Owner, text)
				}
			}
			found += len(page.Items)
		}
		t.Logf("%d queries, %d of them refused as invalid, %d results: %d errors, %d texts of other owners", asked, refused, found, failed, foreign)
	})
}
