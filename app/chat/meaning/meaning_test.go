package meaning_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/chat/meaning"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/langchain"
	"bobbin/app/db"
	"bobbin/app/wire"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// server embeds texts: those about boats are near each other, whatever their words.
type server struct {
	*httptest.Server
	requests, texts atomic.Int64
	broken          atomic.Bool
	dimension       atomic.Int64
	during          func(texts string) // called by each request, if set
}

// world is a search over a database with two sessions of ann and one of bob.
type world struct {
	t        *testing.T
	server   *server
	stores   wire.Stores
	embedder *langchain.Embedder
	worker   *meaning.Embedder
	search   *meaning.Search
	spent    map[string]bool // owners over their limit
	session  core.SessionID
	other    core.SessionID
	foreign  core.SessionID
}

var ann = core.Tenant{Owner: "ann"}

func newWorld(t *testing.T, d *db.DB) *world {
	s := &server{}
	s.dimension.Store(4)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		raw, err := io.ReadAll(r.Body)
		var in struct{ Input []string }
		if err == nil {
			err = json.Unmarshal(raw, &in)
		}
		if err != nil || s.broken.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		s.texts.Add(int64(len(in.Input)))
		if s.during != nil {
			s.during(string(raw))
		}
		var data []string
		for i, text := range in.Input {
			v := make([]float32, s.dimension.Load())
			v[1] = 0.1
			for _, word := range []string{"canoe", "boat", "sailing"} {
				if strings.Contains(text, word) {
					v[0] = 1
				}
			}
			if v[0] == 0 {
				v[2], v[3] = 1, float32(len(text)%7)
			}
			raw, _ := json.Marshal(v)
			data = append(data, fmt.Sprintf(`{"index":%d,"embedding":%s}`, i, raw))
		}
		fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(data, ","))
	}))
	t.Cleanup(s.Close)
	w := &world{t: t, server: s, stores: wire.NewStores(d), spent: map[string]bool{}}
	w.session, w.other, w.foreign = w.newSession("ann"), w.newSession("ann"), w.newSession("bob")
	w.restart()
	for i := range 70 {
		w.say(w.session, "ann", core.RoleUser, fmt.Sprintf("Item %d of the inventory is in hall %d.", i, i%5))
	}
	w.say(w.session, "ann", core.RoleUser, "I bought a canoe in Turku.")
	w.say(w.session, "ann", core.RoleAssistant, "The canoe must be dry in winter.")
	w.say(w.other, "ann", core.RoleUser, "The sailing course is on Saturday.")
	w.say(w.foreign, "bob", core.RoleUser, "My boat is blue.")
	return w
}

// restart builds the parts anew, as another process does.
func (w *world) restart() {
	var err error
	w.embedder, err = langchain.NewEmbedder(langchain.Options{Name: "embed", Model: "embed", Provider: "openai", BaseURL: w.server.URL, APIKey: "k"}, slog.New(slog.DiscardHandler))
	must.Do(w.t, err)
	check := func(_ context.Context, owner string) error {
		if w.spent[owner] {
			return errors.New("spent")
		}
		return nil
	}
	log := slog.New(slog.DiscardHandler)
	w.worker = meaning.NewEmbedder(meaning.EmbedderOptions{
		Vectors: w.stores.MessageVectors, Embedder: w.embedder, Model: llm.Info{Name: "embed", Provider: "openai", InputPrice: 1}, CheckBudget: check,
		Count: func(text string) int { return len(text) / 4 }, Worker: "w", Logger: log,
	})
	w.search = meaning.NewSearch(meaning.SearchOptions{
		Words: w.stores.Search, Vectors: w.stores.MessageVectors, Embedder: limited{w.embedder, w.spent}, Logger: log,
	})
}

// limited is an embedder that keeps the limits of ann.
type limited struct {
	llm.Embedder
	spent map[string]bool
}

func (e limited) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if e.spent["ann"] {
		return nil, core.ErrSpendLimit("1 token", time.Now(), time.Now().Add(time.Hour))
	}
	return e.Embedder.Embed(ctx, texts)
}

func (w *world) newSession(owner string) core.SessionID {
	w.t.Helper()
	s := core.Session{ID: core.NewID[core.SessionID](), Owner: owner, Title: "Boats", Agent: "a", CreatedAt: core.Now(), UpdatedAt: core.Now()}
	must.Get(w.stores.Sessions.Create(w.t.Context(), s))(w.t)
	return s.ID
}

func (w *world) say(session core.SessionID, owner string, role core.Role, text string) core.Message {
	w.t.Helper()
	done, err := w.stores.Messages.Append(w.t.Context(), core.Tenant{Owner: owner}, core.AppendMessages{
		SessionID: session, Messages: []core.Message{{Role: role, Content: text, TokenCount: 5}},
	})
	must.Do(w.t, err)
	return done.Messages[0]
}

// embedAll embeds until nothing is left, and returns how many messages.
func (w *world) embedAll() int {
	w.t.Helper()
	for done := false; !done; { // a session is to be embedded once it is indexed
		var err error
		if _, done, err = w.stores.Search.IndexNext(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	for all := 0; ; {
		n := must.Get(w.worker.EmbedBatch(w.t.Context()))(w.t)
		if all += n; n == 0 {
			return all
		}
	}
}

// find returns the contents of the results.
func (w *world) find(q core.SearchQuery) ([]string, core.SearchPage) {
	w.t.Helper()
	q.SessionID = w.session
	page := must.Get(w.search.Messages(w.t.Context(), ann, q))(w.t)
	var texts []string
	for _, h := range page.Items {
		texts = append(texts, h.Excerpt)
	}
	return texts, page
}

// Messages are embedded in batches, once, and found by what they mean, none of other sessions;
// what they cost is recorded (P16-2).
func TestMeaningBesideWords(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		n := w.embedAll()
		compare.Equal(t, "messages embedded, texts sent", []any{74, int64(74)}, []any{n, w.server.texts.Load()})
		compare.Equal(t, "messages embedded again", 0, w.embedAll())
		got, page := w.find(core.SearchQuery{Text: "my boat", PageQuery: core.PageQuery{Limit: 2}})
		if page.Meaning != core.MeaningUsed || len(got) != 2 || !strings.Contains(got[0], "canoe") || !strings.Contains(got[1], "canoe") {
			t.Errorf("got %q, %s, want both messages about the canoe first", got, page.Meaning)
		}
		known := map[core.MessageID]bool{}
		q := core.SearchQuery{Text: "boat inventory", PageQuery: core.PageQuery{Limit: 20}}
		_, page = w.find(q)
		for pages := 0; ; pages++ {
			for _, h := range page.Items {
				if h.SessionID != w.session || known[h.MessageID] || h.Score == 0 {
					t.Errorf("got %+v, want each message of the session once", h)
				}
				known[h.MessageID] = true
			}
			if page.NextCursor == nil || pages > 50 {
				break
			}
			w.say(w.session, "ann", core.RoleUser, "And a boat again, in the inventory.")
			w.embedAll()
			q.Cursor = *page.NextCursor
			_, page = w.find(q)
		}
		compare.Equal(t, "messages on all pages: want the 70 with a word and the two about the canoe", 72, len(known))
		for name, q := range map[string]core.SearchQuery{
			"a phrase": {Text: `"my boat"`}, "an excluded word": {Text: "boat -hall"}, "the newest": {Text: "boat", Sort: core.SortNewest},
		} {
			if _, page := w.find(q); page.Meaning != "" {
				t.Errorf("%s: got %q, want words alone", name, page.Meaning)
			}
		}
		if got, _ := w.find(core.SearchQuery{Text: "my boat", Role: core.RoleAssistant}); len(got) != 1 {
			t.Errorf("got %q, want the assistant's message alone", got)
		}
		_, page = w.find(core.SearchQuery{Text: "sailing", PageQuery: core.PageQuery{Limit: 1}, Around: 2})
		h := page.Items[0]
		compare.Equal(t, "session's title, messages before", []any{"Boats", 2}, []any{h.SessionTitle, len(h.Before)})
		total, err := w.stores.ModelCalls.SessionTotal(t.Context(), ann, w.session)
		if err != nil || total.Calls < 2 || total.InputTokens == 0 {
			t.Errorf("got %+v, %v, want the calls recorded", total, err)
		}
	})
}

// Of messages that only meaning finds, those by a person whom the question names come first.
func TestMeaningOfAuthors(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		for _, author := range []string{"Liv", "Kai", ""} {
			said := []core.Message{{Role: core.RoleUser, Content: "The canoe leaks.", Author: author}, {Role: core.RoleUser, Content: "Good."}, {Role: core.RoleUser, Content: "Good."}}
			must.Get(w.stores.Messages.Append(t.Context(), ann, core.AppendMessages{SessionID: w.session, Messages: said}))(t)
		}
		w.embedAll()
		if got, page := w.find(core.SearchQuery{Text: "sailing with Liv", PageQuery: core.PageQuery{Limit: 1}}); page.Items[0].Author != "Liv" {
			t.Errorf("got %q, want what Liv said", got)
		}
	})
}

// A message that is edited while the model embeds it, for the first time or again, gets the
// vector of its new text.
func TestMeaningOfChangesMeanwhile(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		first := w.say(w.session, "ann", core.RoleUser, "A boat of my own.")
		revise := func(m core.Message, text string) {
			if _, _, err := w.stores.Branches.Revise(t.Context(), ann, core.ReviseMessage{SessionID: w.session, MessageID: m.ID, Content: text, TokenCount: 5}); err != nil {
				t.Error(err)
			}
		}
		for _, text := range []string{"A bicycle of my own.", "A ladder of my own."} {
			w.server.during = func(texts string) {
				if strings.Contains(texts, "of my own") {
					w.server.during = nil
					revise(first, text)
				}
			}
			w.embedAll()
			if w.server.during != nil {
				t.Error("got the message not embedded, want its first text embedded")
			}
			list, err := w.stores.MessageVectors.SessionVectors(t.Context(), ann, w.session, core.MessageVectorQuery{Space: llm.SpaceOf(w.embedder), Limit: 100})
			if err != nil || len(list) != 73 || list[0].MessageID != first.ID || list[0].Vector[0] != 0 {
				t.Errorf("got %d vectors, first %v, %v, want one of each message, of the edited one that of its new text", len(list), list[0], err)
			}
			revise(first, "A boat of my own, again.")
		}
	})
}

// Without the embedding model search goes on by words and says so; with another dimension all
// is embedded anew (P16-2).
func TestMeaningUnavailable(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		must.Get2(w.stores.Search.IndexNext(t.Context()))(t)
		w.server.broken.Store(true)
		if _, err := w.worker.EmbedBatch(t.Context()); err == nil {
			t.Error("got no error from a broken server")
		}
		before := w.server.requests.Load()
		for range 3 {
			got, page := w.find(core.SearchQuery{Text: "Turku boat"})
			if page.Meaning != core.MeaningUnavailable || len(got) == 0 || !strings.Contains(got[0], "Turku") {
				t.Errorf("got %q, %q, want what words find", got, page.Meaning)
			}
		}
		compare.Equal(t, "requests for three searches: want one", 1, w.server.requests.Load()-before)
		w.server.broken.Store(false)
		w.embedAll()
		w.server.dimension.Store(6)
		w.restart()
		w.say(w.session, "ann", core.RoleUser, "One more.")
		compare.Equal(t, "messages embedded: want all 75 with the new dimension", 75, w.embedAll())
		if got, page := w.find(core.SearchQuery{Text: "my boat"}); page.Meaning != core.MeaningUsed || !strings.Contains(got[0], "canoe") {
			t.Errorf("got %q, %q, want the canoe", got[0], page.Meaning)
		}
	})
}

// An owner who may spend no more is passed over, and not asked for; another process does not
// embed at the same time.
func TestEmbeddingObeysLimits(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		w.spent["ann"] = true
		compare.Equal(t, "messages embedded: want bob's", 1, w.embedAll())
		if _, page := w.find(core.SearchQuery{Text: "my boat"}); page.Meaning != core.MeaningUnavailable || w.server.texts.Load() != 1 {
			t.Errorf("got %q after %d texts, want words alone", page.Meaning, w.server.texts.Load())
		}
		delete(w.spent, "ann")
		if claimed, err := w.stores.MessageVectors.Claim(t.Context(), "another", llm.SpaceOf(w.embedder)); err != nil || claimed {
			t.Errorf("got %v, %v, want that only one worker embeds", claimed, err)
		}
		compare.Equal(t, "messages embedded: want ann's", 73, w.embedAll())
	})
}
