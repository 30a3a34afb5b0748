package compaction_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// talk is a conversation, and a search that finds the messages with the seqs in it.
type talk struct {
	session  core.Session
	messages []core.Message
	seqs     []int64
	query    core.SearchQuery
	err      error
}

// Messages returns the hits.
func (s *talk) Messages(_ context.Context, tenant core.Tenant, q core.SearchQuery) (core.SearchPage, error) {
	s.query = q
	if tenant.Owner != s.session.Owner || q.SessionID != s.session.ID {
		return core.SearchPage{}, fmt.Errorf("searched %q of %q", q.SessionID, tenant.Owner)
	}
	var page core.SearchPage
	for _, seq := range s.seqs {
		m := s.messages[seq-1]
		hit := core.SearchHit{MessageID: m.ID, Seq: m.Seq, Role: m.Role, Excerpt: m.Content}
		if seq > 1 {
			hit.Before = s.neighbor(seq - 1)
		}
		if seq < int64(len(s.messages)) {
			hit.After = s.neighbor(seq + 1)
		}
		page.Items = append(page.Items, hit)
	}
	return page, s.err
}

// neighbor returns the message as one that stands beside a hit.
func (s *talk) neighbor(seq int64) []core.Neighbor {
	m := s.messages[seq-1]
	return []core.Neighbor{{MessageID: m.ID, Seq: m.Seq, Role: m.Role, Excerpt: m.Content}}
}

// newTalk returns a conversation of so many messages, and what recalls from it.
func newTalk(n int, seqs ...int64) (*talk, compaction.Finder) {
	s := &talk{session: core.Session{ID: core.NewID[core.SessionID](), Owner: "ann"}, seqs: seqs}
	for i := range n {
		s.messages = append(s.messages, core.Message{
			ID: core.NewID[core.MessageID](), Seq: int64(i + 1), Role: []core.Role{core.RoleUser, core.RoleAssistant}[i%2], Content: fmt.Sprintf("word\n%d", i+1),
		})
	}
	return s, compaction.Finder{Search: s}
}

// Hits come in their order, each followed by its neighbors, none twice, each in one line.
func TestRecallOrder(t *testing.T) {
	t.Parallel()
	s, finder := newTalk(20, 10, 12, 3, 1, 20)
	found := must.Get(finder.Recall(t.Context(), s.session, "word?", nil))(t)
	var seqs []int64
	for _, m := range found {
		seqs = append(seqs, m.Seq)
		if m.Content != fmt.Sprint("word ", m.Seq) || m.ID == "" || m.Role == "" {
			t.Errorf("got %+v, want its text in one line", m)
		}
	}
	compare.Equal(t, "seqs", []int64{10, 9, 11, 12, 13, 3, 2, 4, 1, 20, 19}, seqs)
}

// What means something in a query means nothing in a message; a message without words finds
// nothing, and is no error.
func TestRecallQuestion(t *testing.T) {
	t.Parallel()
	s, finder := newTalk(2, 1)
	if _, err := finder.Recall(t.Context(), s.session, "say \"the word\" -now, not* “later”\x00 --force a-b", nil); err != nil || s.query.Text != "say the word now, not later force a-b" {
		t.Errorf("got the query %q, %v, want words alone", s.query.Text, err)
	}
	s.err = core.Errorf(core.ErrInvalid, "no word")
	if found, err := finder.Recall(t.Context(), s.session, "?!", nil); len(found) > 0 || err != nil {
		t.Errorf("got %v, %v, want nothing", found, err)
	}
	s.err = errors.New("away")
	compare.Error(t, "err", s.err, compare.ErrorOf(finder.Recall(t.Context(), s.session, "word", nil)))
	s.query = core.SearchQuery{}
	if found, err := finder.Recall(t.Context(), s.session, " \" \n", nil); len(found) > 0 || err != nil || s.query.Text != "" {
		t.Errorf("got %v, %v after the query %q, want no search", found, err, s.query.Text)
	}
}

// Only the first hits have neighbors.
func TestRecallIsBounded(t *testing.T) {
	t.Parallel()
	var seqs []int64
	for seq := int64(2); seq < 120; seq += 3 {
		seqs = append(seqs, seq)
	}
	s, finder := newTalk(121, seqs...)
	found, err := finder.Recall(t.Context(), s.session, strings.Repeat("word ", 10_000), nil)
	if want := len(seqs) + 2*10; err != nil || len(found) != want {
		t.Errorf("got %d messages, %v, want %d", len(found), err, want)
	}
	if len(s.query.Text) > 2_000 || s.query.Limit != 40 {
		t.Errorf("got a query of %d bytes for %d hits, want it bounded", len(s.query.Text), s.query.Limit)
	}
}
