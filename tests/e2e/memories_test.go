package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
)

// twoOwners gives a house the owners alice and bob.
func twoOwners(c *config.Config) {
	c.Auth.Keys = []config.APIKey{
		{Name: "alice", Secret: config.NewSecret("alice's secret")}, {Name: "bob", Secret: config.NewSecret("bob's secret")},
	}
}

// remember stores a memory.
func remember(t *testing.T, c *client.Client, user, content string) core.SavedMemory {
	t.Helper()
	m, err := c.CreateMemory(t.Context(), core.Memory{UserID: user, Content: content})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// W11: create, get, list, update, delete and search, each for the caller's own
// memories and, where a request names a user, for that user's alone.
func TestMemoryEndpoints(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		h := apptest.New(t, url, twoOwners)
		alice, bob := h.NewClient("alice's secret"), h.NewClient("bob's secret")
		pump := remember(t, alice, "carol", "The inspection of the pump is on Friday.")
		remember(t, alice, "dave", "The pump was painted green.")
		remember(t, alice, "", "The supplier is in Graz.")
		remember(t, bob, "carol", "Bob's pump is red.")
		if pump.Notice != "" || pump.Stale || pump.EmbeddingModel != "hashing-384-v1" || pump.Dimension != 384 {
			t.Errorf("created: got %+v, want it embedded offline", pump)
		}
		for _, tt := range []struct {
			name, user string
			c          *client.Client
			want       int // memories
		}{{"all of alice's", "", alice, 3}, {"alice's carol", "carol", alice, 1}, {"alice's erin", "erin", alice, 0}, {"bob", "", bob, 1}, {"bob's carol", "carol", bob, 1}} {
			page, err := tt.c.Memories(t.Context(), tt.user, core.PageQuery{})
			found, err2 := tt.c.SearchMemories(t.Context(), tt.user, core.MemorySearch{Query: "inspection of the pump"})
			if errors.Join(err, err2) != nil || len(page.Items) != tt.want || len(found.Items) != tt.want || found.Searched != tt.want || found.Stale != 0 || found.Matches != "words" {
				t.Errorf("%s: got %d listed and %+v found, error %v; want %d", tt.name, len(page.Items), found, errors.Join(err, err2), tt.want)
			}
		}
		found, err := alice.SearchMemories(t.Context(), "", core.MemorySearch{Query: "When is the inspection?", Limit: 1})
		if err != nil || len(found.Items) != 1 || found.Items[0].Memory.ID != pump.ID || found.Items[0].Score <= 0 {
			t.Errorf("search: got %+v, error %v, want the inspection", found, err)
		}
		if none, err := alice.SearchMemories(t.Context(), "", core.MemorySearch{Query: "When is the inspection?", MinScore: new(float32(0.99))}); err != nil || len(none.Items) != 0 {
			t.Errorf("search for what is nearly the same: got %+v, error %v, want nothing", none, err)
		}
		if m, err := alice.Memory(t.Context(), "carol", pump.ID); err != nil || m.Content != pump.Content {
			t.Errorf("get: got %+v, error %v, want the inspection", m, err)
		}
		page, err := alice.Memories(t.Context(), "", core.PageQuery{Limit: 2})
		if err != nil || len(page.Items) != 2 || page.NextCursor == nil {
			t.Fatalf("list: got %+v, error %v, want a page of 2", page, err)
		}
		if page, err = alice.Memories(t.Context(), "", core.PageQuery{Limit: 2, Cursor: *page.NextCursor}); err != nil || len(page.Items) != 1 || page.Items[0].ID != pump.ID {
			t.Errorf("list on: got %+v, error %v, want the inspection", page, err)
		}
		changed, err := alice.UpdateMemory(t.Context(), "carol", core.Memory{ID: pump.ID, Content: "The valve is new.", Metadata: json.RawMessage(`{"from":"mail"}`)})
		if err != nil || changed.Content != "The valve is new." || changed.UserID != "carol" || changed.Stale || !changed.UpdatedAt.After(changed.CreatedAt) {
			t.Errorf("update: got %+v, error %v", changed, err)
		}
		found, err = alice.SearchMemories(t.Context(), "carol", core.MemorySearch{Query: "valve"})
		if err != nil || len(found.Items) != 1 || string(found.Items[0].Memory.Metadata) == "" {
			t.Errorf("search after the update: got %+v, error %v", found, err)
		}
		h.Restart()
		alice = h.NewClient("alice's secret")
		if err := alice.DeleteMemory(t.Context(), "carol", pump.ID); err != nil {
			t.Errorf("delete: %v", err)
		}
		found, err = alice.SearchMemories(t.Context(), "", core.MemorySearch{Query: "valve"})
		if err != nil || found.Searched != 2 {
			t.Errorf("search after the deletion: got %+v, error %v, want 2 searched", found, err)
		}
		if _, err := alice.Memory(t.Context(), "", pump.ID); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("get after the deletion: got error %v, want not found", err)
		}
	})
}

// Memories by the model of a provider: found by its vectors, stale when another
// model is set, searchable again after a reindex while the server serves.
func TestMemoriesByAProvider(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		wire := newWire(t, "")
		h := apptest.New(t, url, twoOwners)
		alice := h.NewClient("alice's secret")
		for i := range 10 {
			remember(t, alice, "carol", fmt.Sprintf("automobile %d", i))
		}
		h.Config.Models = []config.Model{{Name: "house", Provider: "openai", Model: "toy", BaseURL: wire.url}}
		h.Config.EmbeddingModel = "house"
		h.Restart()
		alice, operator := h.NewClient("alice's secret"), h.NewClient(h.App.Token())
		remember(t, alice, "carol", "green tea")
		found, err := alice.SearchMemories(t.Context(), "", core.MemorySearch{Query: "car"})
		if err != nil || found.Searched != 1 || found.Stale != 10 || found.Matches != "meaning" || found.EmbeddingModel != "openai:toy" {
			t.Errorf("before the reindex: got %+v, error %v, want 10 stale", found, err)
		}
		if _, err := alice.ReindexMemories(t.Context(), core.Reindex{AllOwners: true}); !errors.Is(err, core.ErrForbidden) {
			t.Errorf("all owners' by a key: got error %v, want forbidden", err)
		}
		done, err := operator.ReindexMemories(t.Context(), core.Reindex{AllOwners: true, Limit: 6})
		if err != nil || done.Embedded != 6 || done.Remaining != 4 || done.NextCursor == nil {
			t.Fatalf("first batch: got %+v, error %v, want 6 embedded", done, err)
		}
		done, err = operator.ReindexMemories(t.Context(), core.Reindex{AllOwners: true, Cursor: *done.NextCursor})
		if err != nil || done.Embedded != 4 || done.Remaining != 0 || done.NextCursor != nil {
			t.Errorf("second batch: got %+v, error %v, want the other 4", done, err)
		}
		found, err = alice.SearchMemories(t.Context(), "", core.MemorySearch{Query: "car", Limit: 10})
		if err != nil || found.Stale != 0 || found.Searched != 11 || len(found.Items) != 10 || !strings.HasPrefix(found.Items[9].Memory.Content, "automobile") {
			t.Errorf("after the reindex: got %+v, error %v, want the automobiles", found, err)
		}
	})
}

// Embeddings count in the usage and the limits of whoever asks for them: those of memories, of
// queries, and by the OpenAI API. Over a limit a memory is stored, and found after a reindex.
func TestEmbeddingsObeySpendLimits(t *testing.T) {
	t.Parallel()
	wire := newWire(t, "")
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), twoOwners, func(c *config.Config) {
		c.Models = []config.Model{{Name: "house", Provider: "openai", Model: "toy", BaseURL: wire.url}}
		c.EmbeddingModel = "house"
		c.Auth.Limits = []config.SpendLimit{{Key: "alice", TokensPerDay: 10}, {Key: "bob", USDPerDay: 1}}
	})
	embed := func(key, input string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), "POST", h.URL+"/v1/embeddings", strings.NewReader(`{"model":"openai:toy","input":"`+input+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+key)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	alice, bob := h.NewClient("alice's secret"), h.NewClient("bob's secret")
	if m := remember(t, alice, "", "green tea"); m.Notice != "" {
		t.Errorf("got the notice %q within the limit, want none", m.Notice)
	}
	if _, err := alice.SearchMemories(t.Context(), "", core.MemorySearch{Query: "tea"}); err != nil {
		t.Errorf("got %v within the limit, want none", err)
	}
	if code, body := embed("alice's secret", "one two three four five six seven"); code != 200 {
		t.Errorf("got %d %s within the limit, want 200", code, body)
	}
	sent := len(wire.sent())
	for who, want := range map[*client.Client]struct {
		kind   error
		status int
		words  string
	}{
		alice: {core.ErrRateLimited, 429, "the limit of 10 tokens a day is reached"},
		bob:   {core.ErrInvalid, 422, `the model "house" has no price`},
	} {
		if m := remember(t, who, "", "black tea"); !m.Stale || !strings.Contains(m.Notice, want.words) {
			t.Errorf("got the notice %q, want %q", m.Notice, want.words)
		}
		_, err := who.SearchMemories(t.Context(), "", core.MemorySearch{Query: "tea"})
		wantProblem(t, err, want.kind, want.status, want.words)
		_, err = who.ReindexMemories(t.Context(), core.Reindex{})
		wantProblem(t, err, want.kind, want.status, want.words)
	}
	for key, want := range map[string]string{"alice's secret": core.CodeSpendLimit, "bob's secret": core.CodeModelUnpriced} {
		if code, body := embed(key, "more"); code/100 != 4 || !strings.Contains(body, want) {
			t.Errorf("got %d %s, want %s", code, body, want)
		}
	}
	if n := len(wire.sent()) - sent; n != 0 {
		t.Errorf("got %d requests to the provider over the limits, want none", n)
	}
	if log := h.Log.String(); !strings.Contains(log, "refused to keys with usd_per_day") || !strings.Contains(log, "model=house keys=[bob]") {
		t.Error("got no warning of the embedding model without a price")
	}
}

// wire stands before a provider and keeps what is sent to it. It makes embeddings
// itself: of cars, of tea, of everything else.
type wire struct {
	url string

	mu     sync.Mutex
	bodies []string // guarded by mu
}

func newWire(t *testing.T, behind string) *wire {
	t.Helper()
	w := &wire{}
	mux := http.NewServeMux()
	if behind != "" {
		to, err := url.Parse(strings.TrimSuffix(behind, "/v1"))
		if err != nil {
			t.Fatal(err)
		}
		mux.Handle("/", httputil.NewSingleHostReverseProxy(to))
	}
	mux.HandleFunc("POST /v1/embeddings", w.embed)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		w.mu.Lock()
		w.bodies = append(w.bodies, string(body))
		w.mu.Unlock()
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		mux.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.url = server.URL + "/v1"
	return w
}

func (w *wire) sent() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.bodies...)
}

func (w *wire) embed(rw http.ResponseWriter, r *http.Request) {
	var body struct {
		Input []string `json:"input"`
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		http.Error(rw, `{"error":{"message":"no"}}`, http.StatusUnauthorized)
		return
	}
	var data []string
	for i, text := range body.Input {
		v := "[0.1,0.1,1]"
		switch {
		case strings.Contains(text, "automobile"), strings.Contains(text, "car"):
			v = "[2,0.1,0]"
		case strings.Contains(text, "tea"):
			v = "[0,3,0.1]"
		}
		data = append([]string{fmt.Sprintf(`{"embedding":%s,"index":%d}`, v, i)}, data...)
	}
	fmt.Fprintf(rw, `{"data":[%s]}`, strings.Join(data, ","))
}
