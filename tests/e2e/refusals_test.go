package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/llm"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
	"bobbin/tests/refusal"
)

// realWindow is that of the models whose names promise 128,000 tokens.
const realWindow = 8192

// refusing is a house whose models refuse long prompts each in its own words, and the
// count of the refusal.
type refusing struct {
	*apptest.Bobbin
	mu      sync.Mutex
	refused map[string]int // by model; guarded by mu
}

// newRefusing starts the house. A model's name is that of its refusal, with which
// questions to it begin. The models of always refuse whatever they get.
func newRefusing(t *testing.T, list []refusal.Refusal, always bool) *refusing {
	t.Helper()
	r := &refusing{refused: map[string]int{}}
	byName := map[string]refusal.Refusal{}
	for i, words := range list {
		byName[modelOf(i)] = words
	}
	refuse := func(w http.ResponseWriter, a provider.Asked, n refusal.Numbers) {
		name, _, _ := strings.Cut(a.Question, " ")
		r.mu.Lock()
		r.refused[name]++
		r.mu.Unlock()
		byName[name].Write(w, n)
	}
	options := provider.Options{Window: realWindow, Refuse: func(w http.ResponseWriter, a provider.Asked, limit, prompt, output int) {
		refuse(w, a, refusal.Numbers{Limit: limit, Prompt: prompt, Output: output})
	}}
	if always {
		options = provider.Options{Fault: func(w http.ResponseWriter, a provider.Asked) bool {
			if a.Summary || !strings.HasPrefix(a.Question, "model-") {
				return false
			}
			refuse(w, a, refusal.Numbers{Limit: realWindow, Prompt: 2 * realWindow, Output: 1024})
			return true
		}}
	}
	p := apptest.NewProvider(t, options)
	r.Bobbin = apptest.New(t, dbtest.MigratedSQLiteURL(t), func(c *config.Config) {
		for i := range list {
			c.Models = append(c.Models, config.Model{Name: modelOf(i), Model: "gpt-4o", Provider: "openai", BaseURL: p.URL, MaxOutputTokens: 1024})
		}
		c.Models = append(c.Models, config.Model{Name: "writer", Model: "gpt-4o", Provider: "openai", BaseURL: apptest.NewProvider(t, provider.Options{}).URL})
		c.DefaultLLM = "writer"
	})
	return r
}

func modelOf(i int) string { return fmt.Sprintf("model-%03d", i) }

// count returns how often a model has refused.
func (r *refusing) count(model string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused[model]
}

// longSession returns a session of about 16,000 tokens.
func (r *refusing) longSession(t *testing.T, model string) core.SessionID {
	t.Helper()
	id := apptest.NewSession(t, r.Client, core.Session{Model: model})
	var b strings.Builder
	for i := range 24 {
		fmt.Fprintf(&b, `{"role":"user","content":"Question %d. %s"}`+"\n", i, strings.Repeat("What is in the hall, and who put it there? ", 30))
		fmt.Fprintf(&b, `{"role":"assistant","content":"Answer %d. %s"}`+"\n", i, strings.Repeat("There is a crate of blue lamps in it. ", 34))
	}
	bringIn(t, r.Client, id, core.ImportLines, b.String())
	return id
}

// recovery is what became of a conversation with a model that refused.
type recovery struct {
	words           refusal.Refusal
	first, second   int // refused prompts of the first and of the second message
	window          int // that other sessions with the model plan for
	from            string
	error1, error2  string
	summaries       int
	overflows, used int
}

// recover sends two messages to a model that refuses long prompts.
func (r *refusing) recover(t *testing.T, i int, words refusal.Refusal) recovery {
	t.Helper()
	name := modelOf(i)
	out := recovery{words: words}
	id := r.longSession(t, name)
	send := func(text string) (refused, overflows, used int, failure string) {
		before := r.count(name)
		got := apptest.ReadTurn(t, r.Send(t.Context(), core.SendMessage{SessionID: id, Content: name + " " + text}))
		if got.Run.Error != nil {
			failure = got.Run.Error.Code + ": " + got.Run.Error.Message
		}
		report := reported(t, r.Client, got.Run.ID)
		return r.count(name) - before, report.Overflows, report.Used, failure
	}
	out.first, out.overflows, out.used, out.error1 = send("go on")
	out.second, _, _, out.error2 = send("and then?")
	other := contextOf(t, r.Client, apptest.NewSession(t, r.Client, core.Session{Model: name}))
	out.window, out.from = other.Window, other.WindowFrom
	out.summaries = session(t, r.Client, id).SummaryCount
	return out
}

// fault returns what is wrong with a recovery; empty = nothing.
func (o recovery) fault() string {
	switch {
	case o.error1 != "" || o.error2 != "":
		return "a message failed: " + o.error1 + o.error2
	case o.first == 0:
		return "the prompt was not too long: the test proves nothing"
	case o.first > 2:
		return fmt.Sprintf("%d prompts were refused", o.first)
	case o.second > 1:
		return fmt.Sprintf("%d prompts of the second message were refused", o.second)
	case o.overflows == 0:
		return "the report tells of no refusal"
	case o.from != string(llm.WindowReported) || o.window < 1024 || o.words.Limit && o.window != realWindow:
		return fmt.Sprintf("window %d by %q", o.window, o.from)
	default:
		return ""
	}
}

// Each way in which real servers refuse a prompt that is too long, and
// generated ones, end to end: the first message is answered, and the window is learned
// for the model. Refusals for other reasons, with a prompt that is as long, end the run
// with the provider's own words after one request, or after two shorter ones where the words
// are unusual, and nothing is learned.
func TestRefusals(t *testing.T) {
	t.Parallel()
	vendors, variants, others := refusal.Vendors(), refusal.Variants(200), refusal.Others()
	for i := range variants {
		variants[i].Limit = false // one in unusual words is found by halving
	}
	wantRecovered(t, some(vendors, apptest.ChooseSize(4, len(vendors))))
	wantRecovered(t, some(variants, apptest.ChooseSize(4, len(variants))))
	wantOthersRefused(t, some(others, apptest.ChooseSize(4, len(others))))
}

func wantRecovered(t *testing.T, list []refusal.Refusal) {
	t.Helper()
	r := newRefusing(t, list, false)
	for i, words := range list {
		o := r.recover(t, i, words)
		if fault := o.fault(); fault != "" {
			t.Errorf("%s (%d): %s: %s", words.Name, words.Status, fault, words.Body)
		}
	}
}

func wantOthersRefused(t *testing.T, list []refusal.Refusal) {
	t.Helper()
	r := newRefusing(t, list, true)
	learned := 0
	for i, words := range list {
		name := modelOf(i)
		id := r.longSession(t, name)
		got := apptest.ReadTurn(t, r.Send(t.Context(), core.SendMessage{SessionID: id, Content: name + " go on"}))
		after := contextOf(t, r.Client, apptest.NewSession(t, r.Client, core.Session{Model: name}))
		if after.WindowFrom == string(llm.WindowReported) {
			learned++
		}
		wrong := got.Run.Error == nil || got.Run.Error.Code == "model_context_length" || reported(t, r.Client, got.Run.ID).Overflows > 0
		if wrong || session(t, r.Client, id).SummaryCount > 0 || words.Status != http.StatusTooManyRequests && r.count(name) > 3 {
			t.Errorf("%s: got the error %+v after %d requests, want another after one to three", words.Name, got.Run.Error, r.count(name))
		}
	}
	if learned > 0 {
		t.Errorf("%d windows were learned, want none", learned)
	}
}

// some returns n of the list, evenly.
func some[T any](list []T, n int) (out []T) {
	for i := range n {
		out = append(out, list[i*len(list)/n])
	}
	return out
}
