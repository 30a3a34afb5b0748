package tools_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/tools"
)

// history is a search that answers with what it has.
type history struct {
	page core.SearchPage
	err  error
	got  core.SearchQuery
	who  core.Scope
}

func (h *history) Messages(_ context.Context, scope core.Scope, q core.SearchQuery) (core.SearchPage, error) {
	h.got, h.who = q, scope
	return h.page, h.err
}

// CONTEXT § 9: the agent finds any message of its session, and quotes it with id
// and date.
func TestSearchHistory(t *testing.T) {
	t.Parallel()
	hit := func(seq int64) core.SearchHit {
		return core.SearchHit{MessageID: core.MessageID(fmt.Sprint("m", seq)), Seq: seq, Role: core.RoleUser, Excerpt: "the pump works",
			CreatedAt: time.Date(2026, 3, 4, 23, 30, 0, 0, time.UTC)}
	}
	more := "cursor"
	tests := []struct {
		name string
		page core.SearchPage
		want []string
	}{
		{"nothing", core.SearchPage{}, []string{"Nothing in this conversation has these words."}},
		{"one", core.SearchPage{Page: core.Page[core.SearchHit]{Items: []core.SearchHit{hit(7)}}},
			[]string{"One message has these words.\n\n[message m7, #7, user, 5 March 2026, 00:30 CET]\nthe pump works"}},
		{"more", core.SearchPage{Page: core.Page[core.SearchHit]{Items: []core.SearchHit{hit(9), hit(7)}, NextCursor: &more}, Indexing: true},
			[]string{"The 2 newest messages", "there are more", "some may be missing", "[message m9, #9,"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := &history{page: tt.page}
			got, err := tools.NewSearchHistory(h).Call(t.Context(), tools.Call{
				Arguments: `{"query":"pump","role":"user"}`, Session: core.Session{ID: "s", Owner: "ann", Timezone: "Europe/Vienna"},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("got %q, want %q in it", got, want)
				}
			}
			want := core.SearchQuery{PageQuery: core.PageQuery{Limit: 8}, Text: "pump", SessionID: "s", Role: core.RoleUser, Excerpt: 600}
			if diff := cmp.Diff(want, h.got); diff != "" || h.who != (core.Scope{Owner: "ann"}) {
				t.Errorf("asked by %+v (-want +got):\n%s", h.who, diff)
			}
		})
	}
}

func TestSearchHistoryErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, arguments string
		err             error
		says            string
	}{
		{"no JSON", "pump", nil, "expected a JSON object such as"},
		{"role", `{"query":"a","role":"system"}`, nil, "role must be user, assistant or tool"},
		{"no words", `{"query":"?"}`, core.Errorf(core.ErrInvalid, "there is no word to look for"), "there is no word to look for; expected"},
		{"storage", `{"query":"a"}`, errors.New("secret"), "cannot be searched at the moment"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tools.NewSearchHistory(&history{err: tt.err}).Call(t.Context(), tools.Call{Arguments: tt.arguments})
			if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want an error that says %q", err, tt.says)
			}
		})
	}
}
