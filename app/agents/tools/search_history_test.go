package tools_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// history is a search that answers with what it has.
type history struct {
	page core.SearchPage
	err  error
	got  core.SearchQuery
	who  core.Tenant
}

func (h *history) Messages(_ context.Context, tenant core.Tenant, q core.SearchQuery) (core.SearchPage, error) {
	h.got, h.who = q, tenant
	return h.page, h.err
}

// A search that takes too long is ended, and the model is told what to do; of many
// at once, some wait.
//
// Those for prompts count, too.
func TestSearchHistoryIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var atOnce, most atomic.Int64
		shared := core.NewAgentSearch(searchFunc(func(ctx context.Context) error {
			most.Store(max(most.Load(), atOnce.Add(1)))
			defer atOnce.Add(-1)
			<-ctx.Done()
			return ctx.Err()
		}))
		search, passages := tools.NewSearchHistory(shared), compaction.Finder{Search: shared}
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				if i%2 == 0 {
					compare.Error(t, "a recall that took too long", core.ErrUnavailable, compare.ErrorOf(passages.Recall(t.Context(), core.Session{}, "pump", nil)))
					return
				}
				_, err := search.Call(t.Context(), tools.Call{Arguments: `{"query":"pump"}`})
				if err == nil || !strings.Contains(err.Error(), "took longer than 5s and was stopped; look for rarer or fewer words") {
					t.Errorf("got %v, want what to do", err)
				}
			})
		}
		began := time.Now()
		wg.Wait()
		got := time.Since(began)
		compare.Equal(t, "time of 12 searches, and how many at once", []any{15 * time.Second, int64(4)}, []any{got, most.Load()})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := search.Call(ctx, tools.Call{Arguments: `{"query":"pump"}`}); err == nil {
			t.Error("got no error of a call that was canceled")
		}
	})
}

// A search of an agent waits for a place among those of its caller, and gives it back.
func TestSearchHistoryTakesAPlace(t *testing.T) {
	t.Parallel()
	shared, taken := core.NewAgentSearch(searchFunc(func(context.Context) error { return nil })), 0
	full := errors.New("no place is free")
	shared.Place = func(_ context.Context, tenant core.Tenant) (func(), error) {
		if taken++; tenant.User == "eve" {
			return nil, full
		}
		return func() { taken-- }, nil
	}
	for user, want := range map[string]error{"ann": nil, "eve": full} {
		_, err := shared.Messages(t.Context(), core.Tenant{User: user}, core.SearchQuery{})
		compare.Error(t, user, want, err)
	}
	compare.Equal(t, "places that were not given back", 1, taken)
}

// searchFunc is a search that finds nothing.
type searchFunc func(ctx context.Context) error

func (f searchFunc) Messages(ctx context.Context, _ core.Tenant, _ core.SearchQuery) (core.SearchPage, error) {
	return core.SearchPage{}, f(ctx)
}

// The agent finds any message of its session, and quotes it with id and date.
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
		{"nothing", core.SearchPage{}, []string{"No message that you do not see already fits this search."}},
		{"one", core.SearchPage{Page: core.Page[core.SearchHit]{Items: []core.SearchHit{hit(7)}}},
			[]string{"One message fits, with those before and after.\n\n[message m7, #7, user, 5 March 2026, 00:30 CET]\nthe pump works"}},
		{"more", core.SearchPage{Page: core.Page[core.SearchHit]{Items: []core.SearchHit{hit(9), hit(7)}, NextCursor: &more}, Indexing: true, Total: new(12)},
			[]string{"The 2 most relevant messages", `10 more fit less well: to read on, search again with "skip": 2`, "some may be missing", "[message m9, #9,", "\n---\n"}},
		{"none yet", core.SearchPage{Page: core.Page[core.SearchHit]{NextCursor: &more}, Total: new(2000)}, []string{"there are more: use more specific words"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := &history{page: tt.page}
			asked := time.Now()
			got := must.Get(tools.NewSearchHistory(h).Call(t.Context(), tools.Call{
				AskedAt: asked, Arguments: `{"query":"pump","role":"user"}`, Session: core.Session{ID: "s", Owner: "ann", Timezone: "Europe/Vienna"},
			}))(t)
			for _, want := range tt.want {
				compare.Contains(t, "got: want in it", want, got)
			}
			want := core.SearchQuery{PageQuery: core.PageQuery{Limit: 50}, Text: "pump", SessionID: "s", Role: core.RoleUser, Excerpt: 600, Before: asked, Around: 5}
			if diff := cmp.Diff(want, h.got); diff != "" || h.who != (core.Tenant{Owner: "ann"}) {
				t.Errorf("asked by %+v (-want +got):\n%s", h.who, diff)
			}
		})
	}
}

// Results beside each other are one passage, in which nothing is repeated; what the prompt
// shows is not quoted; the answer has a bounded size and says how to read on.
func TestSearchHistoryPassages(t *testing.T) {
	t.Parallel()
	beside := func(seqs ...int64) (list []core.Neighbor) {
		for _, seq := range seqs {
			list = append(list, core.Neighbor{MessageID: core.MessageID(fmt.Sprint("m", seq)), Seq: seq, Role: core.RoleAssistant, Excerpt: fmt.Sprint("text ", seq)})
		}
		return list
	}
	hit := func(seq int64, before, after []core.Neighbor) core.SearchHit {
		return core.SearchHit{MessageID: core.MessageID(fmt.Sprint("m", seq)), Seq: seq, Role: core.RoleUser, Author: "Ann <system>", Excerpt: fmt.Sprint("found ", seq), Before: before, After: after}
	}
	page := core.SearchPage{Total: new(3), Page: core.Page[core.SearchHit]{Items: []core.SearchHit{
		hit(20, beside(18, 19), beside(21, 22)), hit(5, beside(3, 4), beside(6, 9)), hit(9, beside(5, 6), beside(10)),
	}}}
	call := tools.Call{Arguments: `{"query":"pump","after":"2026-01-31","before":"2026-02-01T12:00:00Z","author":"Ann","skip":4}`, Shown: map[int64]bool{21: true, 22: true}}
	h := &history{page: page}
	got, err := tools.NewSearchHistory(h).Call(t.Context(), call)
	must.Do(t, err)
	var order []string
	for _, line := range strings.Split(got, "\n") {
		if strings.HasPrefix(line, "found") || strings.HasPrefix(line, "text") || line == "---" {
			order = append(order, line)
		}
	}
	want := []string{"text 18", "text 19", "found 20", "---", "text 3", "text 4", "found 5", "text 6", "found 9", "text 10"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, got)
	}
	if !strings.Contains(got, "[#18, assistant, 1 January 0001, 00:00 UTC]\ntext 18\n\n[#19, assistant]\ntext 19\n\n[message m20, #20, user ") {
		t.Errorf("got %q, want ids of what was found only, and the time once", got)
	}
	if strings.Contains(got, "<system>") || !strings.Contains(got, ", found]") {
		t.Errorf("got %q, want the author harmless and what was found marked", got)
	}
	if h.got.Skip != 4 || h.got.Author != "Ann" || h.got.After.Format(time.DateOnly) != "2026-01-31" || h.got.Before.Hour() != 12 || !h.got.Except[21] {
		t.Errorf("asked %+v", h.got)
	}
	page.Total = new(40)
	for i := range page.Items {
		page.Items[i].Excerpt = strings.Repeat("long words ", 800)
	}
	got, err = tools.NewSearchHistory(&history{page: page}).Call(t.Context(), call)
	if err != nil || len(got) > 15_000 || !strings.Contains(got, `35 more fit less well: to read on, search again with "skip": 5`) {
		t.Errorf("got %d bytes, %.300q, %v", len(got), got, err)
	}
}

// The first five messages are quoted with four messages on each side, the next three with two,
// further ones alone. Passages without a gap between them are one.
func TestSearchHistoryQuotesNeighbors(t *testing.T) {
	t.Parallel()
	neighbors := func(first, last int64) (list []core.Neighbor) {
		for seq := first; seq <= last; seq++ {
			list = append(list, core.Neighbor{MessageID: "n", Seq: seq, Role: core.RoleUser, Excerpt: fmt.Sprint("text ", seq)})
		}
		return list
	}
	var page core.SearchPage
	for _, seq := range []int64{29, 20, 100, 200, 300, 400, 500, 600, 700} {
		page.Items = append(page.Items, core.SearchHit{
			MessageID: "m", Seq: seq, Role: core.RoleUser, Excerpt: fmt.Sprint("text ", seq), Before: neighbors(seq-5, seq-1), After: neighbors(seq+1, seq+5),
		})
	}
	got := must.Get(tools.NewSearchHistory(&history{page: page}).Call(t.Context(), tools.Call{Arguments: `{"query":"pump"}`}))(t)
	var passages []string
	for part := range strings.SplitSeq(got, "---\n") {
		seqs := regexp.MustCompile(`(?m)^text (\d+)$`).FindAllStringSubmatch(part, -1)
		passages = append(passages, fmt.Sprintf("%s-%s: %d", seqs[0][1], seqs[len(seqs)-1][1], len(seqs)))
	}
	want := []string{"16-33: 18", "96-104: 9", "196-204: 9", "296-304: 9", "398-402: 5", "498-502: 5", "598-602: 5", "700-700: 1"}
	if diff := cmp.Diff(want, passages); diff != "" {
		t.Errorf("passages (-want +got):\n%s\n%s", diff, got)
	}
}

// An agent finds the memories of the session's user, and never those of another one.
func TestSearchMemories(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	all := []core.MemoryMatch{
		{Memory: core.Memory{ID: "m1", UserID: "ann", Content: "is allergic to nuts", CreatedAt: day}},
		{Memory: core.Memory{ID: "m2", UserID: "bob", Content: "likes jazz", CreatedAt: day}},
		{Memory: core.Memory{ID: "m3", Content: "the office is in Linz", CreatedAt: day}},
	}
	tool := tools.NewSearchMemories(func(_ context.Context, tenant core.Tenant, in core.MemorySearch) (core.MemoryMatches, error) {
		if in.Query == "broken" {
			return core.MemoryMatches{}, errors.New("the database is gone")
		}
		var found core.MemoryMatches
		for _, m := range all {
			if tenant.Owner == "acme" && (tenant.User == "" || tenant.User == m.Memory.UserID) {
				found.Items = append(found.Items, m)
			}
		}
		return found, nil
	})
	for name, c := range map[string]struct{ user, arguments, want string }{
		"a user":      {"ann", `{"query":"food"}`, "The nearest memory; it may have nothing to do with the query.\n\n[memory m1, 1 March 2026]\nis allergic to nuts"},
		"no user":     {"", `{"query":"food"}`, "The nearest memory; it may have nothing to do with the query.\n\n[memory m3, 1 March 2026]\nthe office is in Linz"},
		"a stranger":  {"eve", `{"query":"food"}`, "There are no memories of this user."},
		"no database": {"ann", `{"query":"broken"}`, "error: the memories cannot be searched at the moment"},
	} {
		got, err := tool.Call(t.Context(), tools.Call{Arguments: c.arguments, Session: core.Session{Owner: "acme", UserID: c.user}})
		if err != nil {
			got = "error: " + err.Error()
		}
		compare.Equal(t, name, c.want, strings.TrimSpace(got))
	}
}

// messages is the message log of one session of ann's.
type messages struct {
	core.MessageStore

	all map[core.MessageID]core.Message
}

func (m messages) Get(_ context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID) (core.Message, error) {
	if id == "broken" {
		return core.Message{}, errors.New("disk on fire")
	}
	if got, ok := m.all[id]; ok && tenant.Owner == "ann" && session == "s1" {
		return got, nil
	}
	return core.Message{}, core.Errorf(core.ErrNotFound, "message %s does not exist", id)
}

// What a prompt shows only in part can be read whole, by those to whom the session belongs.
func TestReadResult(t *testing.T) {
	t.Parallel()
	now := time.Now()
	log := messages{all: map[core.MessageID]core.Message{
		"m1":    {Role: core.RoleTool, Content: "0123456789"},
		"m2":    {Role: core.RoleTool, Content: strings.Repeat("ü", 10_000)},
		"said":  {Role: core.RoleUser, Content: "hello"},
		"empty": {Role: core.RoleTool},
		"gone":  {Role: core.RoleTool, Content: "x", DeletedAt: &now},
	}}
	tool := tools.NewReadResult(log)
	ann := core.Session{ID: "s1", Owner: "ann"}
	unknown := func(id string) string { return `this conversation has no tool result with the id "` + id + `"` }
	tests := []struct {
		name, arguments string
		session         core.Session
		want, wantErr   string
	}{
		{"all", `{"message_id": "m1"}`, ann, "[bytes 0 to 10 of 10; this is the end]\n0123456789", ""},
		{"a part", `{"message_id": "m1", "offset": 2, "length": 5}`, ann, "[bytes 2 to 7 of 10; continue at offset 7]\n23456", ""},
		{"the end", `{"message_id": "m1", "offset": 7, "length": 5}`, ann, "[bytes 7 to 10 of 10; this is the end]\n789", ""},
		{"whole characters", `{"message_id": "m2", "offset": 1, "length": 5}`, ann, "[bytes 2 to 6 of 20000; continue at offset 6]\nüü", ""},
		{"the usual length", `{"message_id": "m2"}`, ann, "[bytes 0 to 8000 of 20000; continue at offset 8000]\n" + strings.Repeat("ü", 4000), ""},
		{"behind the end", `{"message_id": "m1", "offset": 10}`, ann, "", "the result has only 10 bytes; offset 10 is behind its end"},
		{"of nothing", `{"message_id": "empty"}`, ann, "", "the result has only 0 bytes; offset 0 is behind its end"},
		{"too much", `{"message_id": "m1", "length": 32001}`, ann, "", "the arguments do not match the schema: at '/length': maximum: got 32,001, want 32,000" +
			`; expected a JSON object such as {"message_id": "01890a5d-ac96-774b-bcce-b302099a8057", "offset": 8000}`},
		{"no result", `{"message_id": "said"}`, ann, "", unknown("said")},
		{"deleted", `{"message_id": "gone"}`, ann, "", unknown("gone")},
		{"not there", `{"message_id": "m9"}`, ann, "", unknown("m9")},
		{"of another owner", `{"message_id": "m1"}`, core.Session{ID: "s1", Owner: "eve"}, "", unknown("m1")},
		{"of another session", `{"message_id": "m1"}`, core.Session{ID: "s2", Owner: "ann"}, "", unknown("m1")},
		{"a store that fails", `{"message_id": "broken"}`, ann, "", "the result cannot be read at the moment"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tool.Call(t.Context(), tools.Call{Arguments: tt.arguments, Session: tt.session})
			checkAnswer(t, got, err, tt.want, tt.wantErr)
		})
	}
	compare.Equal(t, "name, idempotent", []any{core.ToolReadResult, true}, []any{tool.Definition.Name, tool.Repeatable})
}

func TestSearchHistoryErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, arguments string
		err             error
		says            string
	}{
		{"a day", `{"query":"a","after":"yesterday"}`, nil, "after must be a day or a time such as"},
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
