package repositories_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// endedContext is a context that ends without telling the database.
type endedContext struct {
	context.Context

	ended atomic.Bool
}

func (*endedContext) Done() <-chan struct{} { return nil }

func (c *endedContext) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return nil
}

// A search that has taken too long ends between two messages, too, not only in the database.
func TestSearchEndsInTime(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		must.Do(t, repositories.Fillup(t.Context(), s.Gorm, s.session(t).ID, []core.Message{{Role: core.RoleUser, Content: "the pump"}}))
		for _, until := range []string{"substr(m.content", "FROM search_", "FROM messages"} {
			ctx := &endedContext{Context: t.Context()}
			after := func(db *gorm.DB) {
				if strings.Contains(db.Statement.SQL.String(), until) {
					ctx.ended.Store(true)
				}
			}
			must.Do(t, errors.Join(s.Gorm.Callback().Row().After("gorm:row").Replace("end", after), s.Gorm.Callback().Query().After("gorm:query").Replace("end", after)))
			_, err := repositories.NewSearch(s.Gorm).Messages(ctx, ann(), core.SearchQuery{Text: "pump*"})
			compare.Error(t, fmt.Sprintf("after %s: want that it ends", until), context.Canceled, err)
		}
	})
}

// Of a question with very many words, the rarest count.
func TestSearchForManyWords(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		var words []string
		for i := range 60 {
			words = append(words, fmt.Sprintf("w%d", i))
		}
		var messages []core.Message
		for i := range 80 {
			text := strings.Join(words, " ")
			if i == 30 {
				text = "zebra"
			}
			messages = append(messages, core.Message{Role: core.RoleUser, Content: text})
		}
		must.Do(t, repositories.Fillup(t.Context(), s.Gorm, s.session(t).ID, messages))
		for name, search := range map[string]*repositories.Search{"all": repositories.NewSearch(s.Gorm), "few": repositories.NewSmallSearch(s.Gorm)} {
			page, err := search.Messages(t.Context(), ann(), core.SearchQuery{Text: strings.Join(words, " ") + " zebra nowhere w1.w2*"})
			if err != nil || len(page.Items) == 0 || page.Items[0].Seq < 29 || page.Items[0].Seq > 33 {
				t.Errorf("%s: got %+v (%v), want what is at the zebra first", name, page.Items, err)
			}
		}
	})
}

// A search reads a bounded number of bytes, the same on both databases.
func TestSearchReadsFewBytes(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		var messages []core.Message
		for i := range 60 {
			var b strings.Builder
			for k := range 200 {
				fmt.Fprintf(&b, "pump x%dy%d ", i, k)
			}
			messages = append(messages, core.Message{Role: core.RoleUser, Content: b.String()})
		}
		must.Do(t, repositories.Fillup(t.Context(), s.Gorm, s.session(t).ID, messages))
		s.index(t)
		// An entry has 201 terms of 5 bytes; the last one is read whole. Then come neighbors.
		for bytes, want := range map[int]int{20 * 1005: 21, 1 << 20: 60} {
			page, err := repositories.NewNarrowSearch(s.Gorm, bytes).Messages(t.Context(), ann(), core.SearchQuery{Text: "pump"})
			if err != nil || *page.Total < want || *page.Total > 2*want || len(page.Items) == 0 {
				t.Errorf("%d bytes: got %d messages (%v), want %d", bytes, *page.Total, err, want)
			}
		}
	})
}

// A switch to another branch writes only the entries of messages that come on or off the path.
func TestPathSwitchWritesFewEntries(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		s.turns(t, id, 2)
		last := s.log(t, id)[3].ID
		written := int64(0)
		must.Do(t, s.Gorm.Callback().Raw().After("gorm:raw").Register("count", func(db *gorm.DB) {
			if strings.Contains(db.Statement.SQL.String(), "UPDATE search_entries SET on_path") {
				written += db.RowsAffected
			}
		}))
		for range 3 {
			s.index(t)
			s.again(t, id, last)
		}
		if written != 3 {
			t.Errorf("three new answers wrote %d entries, want one each", written)
		}
	})
}

// A list of sessions with a frequent word is whole whether it is in the newest sessions or in older
// ones, page by page.
func TestSessionsWithFrequentWords(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		const sessions = 400
		var common, old []string
		for i := range sessions {
			title := fmt.Sprint(i)
			created := must.Get(s.sessions.Create(t.Context(), core.Session{Owner: "ann", Title: title}))(t)
			text := "nothing"
			if i%40 == 0 {
				text, common = "the pump", append(common, title)
			}
			if i < 8 {
				text, old = text+" of the hall", append(old, title)
			}
			if text == "nothing" {
				continue
			}
			must.Do(t, repositories.Fillup(t.Context(), s.Gorm, created.ID, slices.Repeat([]core.Message{{Role: core.RoleUser, Content: text}}, 80)))
		}
		s.index(t)
		for text, want := range map[string][]string{"pump": common, "hall": old, "pump hall": {"0"}} {
			slices.Reverse(want)
			compare.Equal(t, text, want, s.sessionPages(t, text))
		}
	})
}

// Filters that the index does not have do not disturb Skip, Total and cursors.
func TestRankedPagesOfAnAuthor(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		var messages []core.Message
		for i := range 30 {
			messages = append(messages, core.Message{Role: core.RoleUser, Content: fmt.Sprintf("pump %d", i), Author: []string{"Ann", "Ann", "Ben"}[i%3]})
		}
		must.Do(t, repositories.Fillup(t.Context(), s.Gorm, id, messages))
		for skip, want := range map[int]int{0: 4, 4: 4, 8: 1, 9: 0} {
			q := core.SearchQuery{Text: "pump", SessionID: id, Author: "Ben", Skip: skip, Except: map[int64]bool{3: true}, PageQuery: core.PageQuery{Limit: 4}}
			page, err := repositories.NewSearch(s.Gorm).Messages(t.Context(), ann(), q)
			if err != nil || len(page.Items) != want || *page.Total != 9 || (page.NextCursor != nil) != (skip+want < 9) {
				t.Errorf("skip %d: got %d of %d messages, %v (%v), want %d of 9", skip, len(page.Items), *page.Total, page.NextCursor, err, want)
			}
		}
		seen := map[int64]bool{}
		for q := (core.SearchQuery{Text: "pump", Author: "Ben", Except: map[int64]bool{3: true}, PageQuery: core.PageQuery{Limit: 2}}); ; {
			page := must.Get(repositories.NewSearch(s.Gorm).Messages(t.Context(), ann(), q))(t)
			for _, h := range page.Items {
				if seen[h.Seq] || h.Author != "Ben" || h.Seq == 3 {
					t.Errorf("got message %d of %s again, or not of Ben", h.Seq, h.Author)
				}
				seen[h.Seq] = true
			}
			if page.NextCursor == nil {
				break
			}
			q.Cursor = *page.NextCursor
		}
		if len(seen) != 9 {
			t.Errorf("pages have %d messages, want 9", len(seen))
		}
	})
}
