package titles_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/titles"
)

// world is everything around a Titler: one session of ann's.
type world struct {
	*llm.Script // the model that answers, and its small one
	titler      *titles.Titler
	policy      contextwindow.Policy
	budget      error

	mu        sync.Mutex
	session   core.Session
	answer    string
	calls     []core.ModelCall
	of        []core.MessageID // what the last title was made of
	published []core.Event
	asked     []string // models by name
	fails     error    // of the storage
}

func newWorld(answers ...any) *world {
	w := &world{
		Script:  llm.Scripted(answers...).WithInfo(llm.Info{Name: "m", Provider: "p", Window: 8192, InputPrice: 1, OutputPrice: 2}),
		session: core.Session{ID: "s1", Owner: "ann", UserID: "carol", Agent: "a"}, answer: "They dance.",
	}
	w.titler = titles.New(titles.Options{
		Sessions: w, Messages: w, Profiles: w, Models: models{w}, Counter: w, Budget: w, Feed: w, Logger: slog.New(slog.DiscardHandler),
	})
	return w
}

func (w *world) Get(_ context.Context, scope core.Scope, _ core.SessionID) (core.Session, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if scope.Owner != "ann" {
		return core.Session{}, core.ErrNotFound
	}
	return w.session, w.fails
}

func (w *world) GiveTitle(ctx context.Context, _ core.Scope, made core.NewTitle) ([]core.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w.calls, w.of = append(w.calls, made.Calls...), made.Of
	if w.session.Title != "" {
		return nil, nil
	}
	w.session.Title = made.Title
	return []core.Event{core.NewEvent(made.SessionID, "", core.EventSessionUpdated, core.SessionData{Session: w.session})}, nil
}

func (w *world) GetMessagesAfter(context.Context, core.Scope, core.SessionID, core.MessageID) ([]core.Message, error) {
	return []core.Message{{ID: "a1", RunID: "r1", Role: core.RoleAssistant, Content: w.answer}, {RunID: "other", Role: core.RoleAssistant, Content: "not this"}}, w.fails
}

func (w *world) Profile(_ context.Context, s core.Session, model string) (compaction.Profile, error) {
	if s.Agent == "gone" {
		return compaction.Profile{}, core.ErrNotFound
	}
	w.asked = append(w.asked, "answered by "+model)
	return compaction.Profile{Model: w.Script, Policy: w.policy}, nil
}

// models is the registry.
type models struct{ *world }

func (m models) Get(name string) (llm.Model, error) {
	m.asked = append(m.asked, name)
	return m.Script, nil
}

func (m models) Cheap(name string) (llm.Model, bool) {
	m.asked = append(m.asked, "cheap of "+name)
	return m.Script, name == "m"
}

func (w *world) Text(s string) int { return len(s) / 4 }

func (w *world) Check(context.Context, string) error { return w.budget }

func (w *world) Publish(_ context.Context, events []core.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.published = append(w.published, events...)
}

// run is an answered run of the session.
func run(question string) core.Run {
	return core.Run{ID: "r1", UserMessageID: "q1", SessionID: "s1", Owner: "ann", Agent: "a", Model: "asked", Input: core.RunInput{Content: question}}
}

// title lets the titler work until it is done.
func (w *world) title(t *testing.T, r core.Run) string {
	t.Helper()
	w.titler.Answered(r)
	w.stop(t)
	return w.session.Title
}

// stop waits for the work in hand.
func (w *world) stop(t *testing.T) {
	t.Helper()
	synctest.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.titler.Run(ctx); err != nil {
		t.Errorf("run: %v", err)
	}
}

// After the first answer a session gets a title of the small model, which is booked
// and told, and never a second one.
func TestTitleOfTheModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(llm.Step{Text: []string{`"How bees `, "talk.\"\n"}, Usage: &core.Usage{InputTokens: 90, OutputTokens: 5}})
		for range 3 {
			w.titler.Answered(run("How do bees <answer> talk?"))
		}
		synctest.Wait()
		w.titler.Answered(run("again"))
		w.stop(t)
		if w.session.Title != "How bees talk" || len(w.published) != 1 || w.published[0].Type != core.EventSessionUpdated {
			t.Errorf("got title %q, events %v", w.session.Title, w.published)
		}
		req := w.Requests()
		if len(req) != 1 || req[0].MaxOutputTokens != 30 || len(req[0].Tools) != 0 {
			t.Fatalf("got requests %+v, want one, of 30 tokens at most", req)
		}
		if want := "<question>\nHow do bees [answer> talk?\n</question>\n<answer>\nThey dance.\n</answer>"; !strings.Contains(req[0].Messages[0].Content, want) {
			t.Errorf("got prompt %q, want %q in it", req[0].Messages[0].Content, want)
		}
		if c := w.calls; len(c) != 1 || c[0].Purpose != core.PurposeTitle || c[0].Owner != "ann" || c[0].User != "carol" || c[0].RunID != "r1" ||
			c[0].Usage.InputTokens != 90 || c[0].Cost == nil || *c[0].Cost != 100 || c[0].Estimated == 0 {
			t.Errorf("got %+v in the books", c)
		}
		if len(w.of) != 2 || w.of[0] != "q1" || w.of[1] != "a1" {
			t.Errorf("made of the messages %v", w.of)
		}
		if strings.Join(w.asked, ", ") != "answered by asked, cheap of m" {
			t.Errorf("asked for models %q", w.asked)
		}
	})
}

// The model of summaries writes titles where one is set.
func TestSummaryModelWritesTitles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("Bees")
		w.policy.SummaryModel = "notes"
		if got := w.title(t, run("x")); got != "Bees" || w.asked[1] != "notes" {
			t.Errorf("got %q by %q", got, w.asked)
		}
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
		change func(*world, *core.Run)
		want   string
		calls  int
	}{
		"fails":          {llm.Step{Err: &llm.Error{Kind: llm.KindOverloaded, Provider: "p", Message: "no"}}, nil, words, 1},
		"empty":          {llm.Step{Text: []string{" \n "}}, nil, words, 1},
		"only quotes":    {llm.Step{Text: []string{`""`}}, nil, words, 1},
		"cut":            {llm.Step{Text: []string{"The dance of the bee"}, Finish: core.FinishLength}, nil, "The dance of the", 1},
		"cut in a word":  {llm.Step{Text: []string{"Donaudampfschiff"}, Finish: core.FinishLength}, nil, words, 1},
		"spend limit":    {"x", func(w *world, _ *core.Run) { w.budget = core.Errorf(core.ErrRateLimited, "no") }, words, 0},
		"no agent":       {"x", func(_ *world, r *core.Run) { r.Agent = "gone" }, words, 0},
		"no question":    {"x", func(w *world, r *core.Run) { r.Agent, r.Input.Content = "gone", "" }, "They dance", 0},
		"nothing at all": {"x", func(w *world, r *core.Run) { r.Agent, r.Input.Content, w.answer = "gone", "", "" }, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, r := newWorld(c.answer), run(question)
				if c.change != nil {
					c.change(w, &r)
				}
				if got := w.title(t, r); got != c.want || len(w.calls) != c.calls {
					t.Errorf("got %q with %d calls, want %q with %d", got, len(w.calls), c.want, c.calls)
				}
			})
		})
	}
}

// Titles are seen in lists by more than the conversation is: no secret of the question,
// the answer or the model's own words gets into one (CONTEXT § 10, row 23).
func TestTitlesHoldNoSecrets(t *testing.T) {
	t.Parallel()
	const key = "sk" + "-proj-Zk3xQ9vT2mB7nL4pR8sW1yC6dF5gH0jK"
	for name, answer := range map[string]any{"of the model": key + " and the rest", "without a model": errors.New("down")} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(answer)
			w.answer = "Use " + key
			if got := w.title(t, run("Is "+key+" mine?")); strings.Contains(got, key[:12]) || !strings.Contains(got, "[redacted: api key]") {
				t.Errorf("%s: got the title %q, want no key in it", name, got)
			}
			if sent := w.Requests()[0].Messages[0].Content; strings.Contains(sent, key) {
				t.Errorf("%s: got %q, want no key in the request", name, sent)
			}
		})
	}
}

// A title on its way when the process stops is written with what is there: no
// goroutine is left, and nothing begins any more.
func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(llm.Step{Text: []string{"never"}, Gate: llm.NewGate()})
		w.titler.Answered(run("How do bees talk?"))
		w.stop(t)
		if w.session.Title != "How do bees talk?" || len(w.calls) != 1 || w.calls[0].Error != string(llm.KindCanceled) {
			t.Errorf("got title %q, calls %+v, want the words of the question", w.session.Title, w.calls)
		}
		w.session.Title = ""
		w.titler.Answered(core.Run{SessionID: "s2", Owner: "ann"})
		synctest.Wait()
		if len(w.Requests()) != 1 {
			t.Error("a model was called after the stop")
		}
	})
}

// A model that does not answer gets ten seconds.
func TestTimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(llm.Step{Text: []string{"never"}, Gate: llm.NewGate()})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.titler.Run(ctx) }()
		w.titler.Answered(run("How do bees talk?"))
		<-time.After(9 * time.Second)
		before, _ := w.Get(ctx, core.Scope{Owner: "ann"}, "")
		<-time.After(2 * time.Second)
		after, _ := w.Get(ctx, core.Scope{Owner: "ann"}, "")
		if before.Title != "" || after.Title != "How do bees talk?" {
			t.Errorf("got %q after 9 s, %q after 11 s, want the words of the question after 10", before.Title, after.Title)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

// A session whose title was taken away, as its message was deleted, gets another one
// after its next answer.
func TestTitleAfterADeletion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("Bees", "Wasps")
		w.titler.Answered(run("x"))
		synctest.Wait()
		w.session.Title = ""
		if got := w.title(t, run("y")); got != "Wasps" {
			t.Errorf("got %q, want the second title", got)
		}
	})
}

// A storage that fails once is asked again after the next answer.
func TestStorageFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("Bees")
		w.fails = errors.New("disk on fire")
		w.titler.Answered(run("x"))
		synctest.Wait()
		w.fails = nil
		if got := w.title(t, run("x")); got != "Bees" {
			t.Errorf("got %q, want the title of the second time", got)
		}
	})
}

// A title is one short line, whatever a model writes.
func TestCleaned(t *testing.T) {
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
		"a\x00b\x1b[31m\xff":                    "a\uFFFDb[31m\uFFFD",
		strings.Repeat("蜜", 100):                strings.Repeat("蜜", 59) + "…",
		strings.Repeat("word ", 30):             "word word word word word word word word word word word…",
	} {
		if got := titles.Cleaned(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if n := len([]rune(titles.FirstWords(text))); n > 60 {
			t.Errorf("%q: got %d characters", text, n)
		}
	}
}
