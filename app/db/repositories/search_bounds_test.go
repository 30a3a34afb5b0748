package repositories_test

import (
	"context"
	"errors"
	"fmt"
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
		compare.Equal(t, "entries written for three new answers", 3, written)
	})
}
