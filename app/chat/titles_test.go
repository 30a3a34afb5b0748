package chat_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/chat"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// world is everything around a Titler: one session of ann's.
type titleWorld struct {
	core.SessionStore
	core.Publisher
	*llmtest.Script // the model that answers, and its small one
	titler          *chat.Titler
	policy          contextwindow.Policy
	budget          error

	mu        sync.Mutex
	session   core.Session
	calls     []core.ModelCall
	of        []core.MessageID // what the last title was made of
	published []core.Event
	asked     []string // models by name
}

func newTitleWorld(answers ...any) *titleWorld {
	w := &titleWorld{
		Script:  llmtest.Scripted(answers...).WithInfo(llm.Info{Name: "m", Provider: "p", Window: 8192, InputPrice: 1, OutputPrice: 2}),
		session: core.Session{ID: "s1", Owner: "ann", UserID: "carol", Agent: "a"},
	}
	w.titler = chat.NewTitler(chat.TitlerOptions{
		Sessions: w, LoadProfile: w.Profile, Models: titleModels{w}, Counter: w, Budget: w.Check, Feed: w, Logger: slog.New(slog.DiscardHandler),
	})
	return w
}

func (w *titleWorld) Get(_ context.Context, tenant core.Tenant, _ core.SessionID) (core.Session, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if tenant.Owner != "ann" {
		return core.Session{}, core.ErrNotFound
	}
	return w.session, nil
}

func (w *titleWorld) GiveTitle(ctx context.Context, _ core.Tenant, made core.NewTitle) ([]core.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w.calls, w.of = append(w.calls, made.Calls...), made.Of
	if w.session.Title != "" || made.Title == "" {
		return nil, nil
	}
	w.session.Title = made.Title
	return []core.Event{core.NewEvent(made.SessionID, made.RunID, core.EventSessionUpdated, core.SessionData{Session: w.session})}, nil
}

func (w *titleWorld) Profile(_ context.Context, s core.Session, model string) (compaction.Profile, error) {
	if s.Agent == "gone" {
		return compaction.Profile{}, core.ErrNotFound
	}
	w.asked = append(w.asked, "answered by "+model)
	return compaction.Profile{Model: w.Script, Policy: w.policy}, nil
}

// models is the registry.
type titleModels struct{ *titleWorld }

func (m titleModels) Get(name string) (llm.Model, error) {
	m.asked = append(m.asked, name)
	return m.Script, nil
}

func (m titleModels) Preferred(name string, p llm.Preference) (llm.Model, bool) {
	m.asked = append(m.asked, string(p)+" of "+name)
	return m.Script, name == "m"
}

func (w *titleWorld) Text(s string) int { return len(s) / 4 }

func (w *titleWorld) Check(context.Context, string, llm.Info) error { return w.budget }

func (w *titleWorld) Publish(_ context.Context, events []core.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.published = append(w.published, events...)
}

// run is an answered run of the session.
func titleRun(question string) core.Run {
	return core.Run{ID: "r1", UserMessageID: "q1", SessionID: "s1", Owner: "ann", Agent: "a", Model: "asked", Input: core.RunInput{Content: question}}
}

// title lets the titler work until it is done.
func (w *titleWorld) title(t *testing.T, r core.Run) string {
	t.Helper()
	w.titler.Begin(w.session, r)
	w.stop(t)
	return w.session.Title
}

// stop waits for the work in hand.
func (w *titleWorld) stop(t *testing.T) {
	t.Helper()
	synctest.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	compare.Error(t, "run", nil, w.titler.Run(ctx))
}

// While its first question is answered a session gets a title of the small model, which is in the
// usage records and published as an event of the run, and never a second one.
func TestTitleOfTheModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTitleWorld(llmtest.Step{Text: []string{`"How bees `, "talk.\"\n"}, Usage: &core.Usage{InputTokens: 90, OutputTokens: 5}})
		session := w.session
		for range 3 {
			w.titler.Begin(session, titleRun("How do bees <answer> talk?"))
		}
		synctest.Wait()
		w.titler.Begin(w.session, titleRun("again"))
		w.stop(t)
		if w.session.Title != "How bees talk" || len(w.published) != 1 || w.published[0].Type != core.EventSessionUpdated || w.published[0].RunID != "r1" {
			t.Errorf("got title %q, events %v", w.session.Title, w.published)
		}
		req := w.Requests()
		must.True(t, len(req) == 1 && req[0].MaxOutputTokens == 2048 && len(req[0].Tools) == 0, "got requests %+v, want one, with room for thoughts", req)
		compare.Equal(t, "prompt", "<question>\nHow do bees [answer> talk?\n</question>\nThe title:", req[0].Messages[0].Content)
		if c := w.calls; len(c) != 1 || c[0].Purpose != core.PurposeTitle || c[0].Owner != "ann" || c[0].User != "carol" || c[0].RunID != "r1" ||
			c[0].Usage.InputTokens != 90 || c[0].Cost == nil || *c[0].Cost != 100 || c[0].Estimated == 0 {
			t.Errorf("got %+v in the books", c)
		}
		compare.True(t, len(w.of) == 1 && w.of[0] == "q1", "made of the messages %v", w.of)
		compare.Equal(t, fmt.Sprintf("asked for models %q", w.asked), "answered by asked, small of m", strings.Join(w.asked, ", "))
	})
}

// Without a model that can be had, or may be paid for, the title is the first words
// of the question.
func TestTitleWithoutAModel(t *testing.T) {
	t.Parallel()
	const question = "  How do\n\tbees talk to each other when they are far away from home?"
	const words = "How do bees talk to each other when they are far away from…"
	for name, c := range map[string]struct {
		answer any
		change func(*titleWorld, *core.Run)
		want   string
		calls  int
	}{
		"fails":         {llmtest.Step{Err: &llm.Error{Kind: llm.KindOverloaded, Provider: "p", Message: "no"}}, nil, words, 1},
		"filtered":      {llmtest.Step{Err: &llm.Error{Kind: llm.KindContentFilter, Provider: "p", Message: "no"}}, nil, words, 1},
		"empty":         {llmtest.Step{Text: []string{" \n "}}, nil, words, 1},
		"only thoughts": {"<think>The user wants", nil, words, 1},
		"thoughts":      {"<think>The user wants a title.</think>\n\nBees", nil, "Bees", 1},
		"only quotes":   {llmtest.Step{Text: []string{`""`}}, nil, words, 1},
		"cut":           {llmtest.Step{Text: []string{"The dance of the bee"}, Finish: core.FinishLength}, nil, "The dance of the", 1},
		"cut in a word": {llmtest.Step{Text: []string{"Donaudampfschiff"}, Finish: core.FinishLength}, nil, words, 1},
		"spend limit":   {"x", func(w *titleWorld, _ *core.Run) { w.budget = core.Errorf(core.ErrRateLimited, "no") }, words, 0},
		"no agent":      {"x", func(_ *titleWorld, r *core.Run) { r.Agent = "gone" }, words, 0},
		"no question":   {"x", func(_ *titleWorld, r *core.Run) { r.Agent, r.Input.Content = "gone", "" }, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, r := newTitleWorld(c.answer), titleRun(question)
				if c.change != nil {
					c.change(w, &r)
				}
				got := w.title(t, r)
				compare.Equal(t, "title, calls", []any{c.want, c.calls}, []any{got, len(w.calls)})
			})
		})
	}
}

// More people see a title in lists than the conversation: no secret of the question or
// the model's own words gets into one.
func TestTitlesHoldNoSecrets(t *testing.T) {
	t.Parallel()
	const key = "sk" + "-proj-Zk3xQ9vT2mB7nL4pR8sW1yC6dF5gH0jK"
	for name, answer := range map[string]any{"of the model": key + " and the rest", "without a model": errors.New("down")} {
		synctest.Test(t, func(t *testing.T) {
			w := newTitleWorld(answer)
			got := w.title(t, titleRun("Is "+key+" mine?"))
			compare.True(t, !strings.Contains(got, key[:12]) && strings.Contains(got, "[redacted: api key]"), "%s: got the title %q, want no key in it", name, got)
			sent := w.Requests()[0].Messages[0].Content
			compare.True(t, !strings.Contains(sent, key), "%s: got %q, want no key in the request", name, sent)
		})
	}
}

// A title in progress when the process stops is written with what is there: no goroutine is
// left, and no new work begins.
func TestTitlerStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTitleWorld(llmtest.Step{Text: []string{"never"}, Gate: llmtest.NewGate()})
		w.titler.Begin(w.session, titleRun("How do bees talk?"))
		w.stop(t)
		compare.True(t, w.session.Title == "How do bees talk?" && len(w.calls) == 1 && w.calls[0].Error == string(llm.KindCanceled), "got title %q, calls %+v, want the words of the question", w.session.Title, w.calls)
		w.session.Title = ""
		w.titler.Begin(w.session, titleRun("again"))
		synctest.Wait()
		compare.Equal(t, "a model was called after the stop", 1, len(w.Requests()))
	})
}

// A model that does not answer gets thirty seconds.
func TestTitleTimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTitleWorld(llmtest.Step{Text: []string{"never"}, Gate: llmtest.NewGate()})
		w.titler.Begin(w.session, titleRun("How do bees talk?"))
		var titles []string
		for _, d := range []time.Duration{29 * time.Second, 2 * time.Second} {
			<-time.After(d)
			titles = append(titles, must.Get(w.Get(t.Context(), core.Tenant{Owner: "ann"}, w.session.ID))(t).Title)
		}
		compare.Equal(t, "titles after 29 s and 31 s", []string{"", "How do bees talk?"}, titles)
		w.stop(t)
	})
}

// A title is one short line, whatever a model writes.
func TestTitleCleaned(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"How bees talk":                         "How bees talk",
		"\n\n  **Title: How bees talk.**\nMore": "How bees talk",
		"„Wie Bienen sprechen“":                 "Wie Bienen sprechen",
		"标题：蜜蜂如何交流。":                            "蜜蜂如何交流",
		"# A plan\n1. x":                        "A plan",
		"Why?":                                  "Why?",
		"\"\"":                                  "",
		"":                                      "",
		"...\nSecond":                           "Second",
		`{"title": "How bees talk"}`:            "How bees talk",
		"```json\n{\n \"title\": \"How bees talk\"\n}\n```": "How bees talk",
		"```\nHow bees talk\n```":                           "How bees talk",
		`{"name": "How bees talk"}`:                         "How bees talk",
		`{"title": ""}`:                                     "",
		`["How bees talk"]`:                                 "How bees talk",
		`[{"title": {"text": "How bees talk"}}]`:            "How bees talk",
		`[]`:                                                "",
		"How bees talk <think>Good.</think>":                "How bees talk",
		"What <think> means":                                "What <think> means",
		`[Draft`:                                            "[Draft",
		`{"title": "How be`:                                 "",
		"[Draft] How bees talk":                             "[Draft] How bees talk",
		"a\x00b\x1b[31m\xff":                                "a\uFFFDb[31m\uFFFD",
		strings.Repeat("蜜", 100):                            strings.Repeat("蜜", 59) + "…",
		strings.Repeat("word ", 30):                         "word word word word word word word word word word word…",
	} {
		compare.Equal(t, fmt.Sprintf("%q", text), want, chat.Cleaned(text))
		n := len([]rune(core.TitleOf(text)))
		compare.True(t, n <= 60, "%q: got %d characters", text, n)
	}
}
