// Package branches_test takes sessions through random sequences of everything that
// can happen to a log: messages, edits, new answers, selected branches, deletions,
// pins, forks and summaries, before and after the cursor, with runs that fail, are
// interrupted or lose their process. After each step it looks whether all is there
// and all prompts are right.
//
// Storage, agents and the keeper of prompts are the real ones; the model and the
// summarizer are scripted. A variable of the environment changes them:
//
//	BOBBIN_BRANCHES_SEQUENCES  how many sequences there are on SQLite
package branches_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/agents"
	"bobbin/app/agents/nodes"
	"bobbin/app/agents/tools"
	"bobbin/app/chat"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/events"
	"bobbin/app/runs"
	"bobbin/tests/dbtest"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

const (
	owner  = "ann"
	worker = "w"
	window = 3000 // tokens of the model: small, so that much happens in it
)

// mark is what every text holds once, so that it can be found again anywhere.
var mark = regexp.MustCompile(`\bqx\d+z`)

// world is one database with everything above it, but without goroutines: a run is
// executed when the test says so.
type world struct {
	t         *testing.T
	db        *db.DB
	rand      *rand.Rand
	sessions  *repositories.Sessions
	messages  *repositories.Messages
	tools     *tools.Set
	runs      *repositories.Runs
	branches  *repositories.Branches
	options   compaction.Options
	keeper    *compaction.Compactor
	inspector *compaction.Inspector
	engine    *agents.Engine
	chat      *chat.Service
	counter   *tokens.Counter
	started   []core.Run // by the use cases, not executed yet

	mu       sync.Mutex         // for rand and marks while tools are at work
	marks    int                // given out so far
	moods    []string           // what the model does next; empty = it answers
	die      context.CancelFunc // ends the process of the run at work
	asked    *talk              // whose run is at work
	agents   map[string]core.Agent
	talks    []*talk
	deadline int      // summaries that fail from now on
	trace    []string // the steps of this sequence

	violations int // of promises
}

// newWorld returns a world over the database.
func newWorld(t *testing.T, d *db.DB) *world {
	t.Helper()
	counter := tokens.NewCounter()
	w := &world{
		t: t, db: d, counter: counter,
		sessions: repositories.NewSessions(d.Gorm), messages: repositories.NewMessages(d.Gorm), runs: repositories.NewRuns(d.Gorm), branches: repositories.NewBranches(d.Gorm),
	}
	w.tools = tools.NewSet(w.lookup())
	w.agents = policies(w.tools.Names())
	w.options = compaction.Options{
		Stores: compaction.Stores{Sessions: w.sessions, Messages: w.messages, Summaries: repositories.NewSummaries(d.Gorm), Runs: w.runs},
		Models: registry{w}, LoadProfile: agents.NewProfiles(w, registry{w}, w.tools, contextwindow.Global{SummaryModel: "writer"}).Profile,
		Counter: counter, Calibrator: measured(), Publisher: silent{}, Logger: slog.New(slog.DiscardHandler),
		SummaryTime: 10 * time.Second, BackgroundTime: time.Minute, Grace: time.Second,
	}
	w.keeper = compaction.New(w.options)
	w.inspector = &compaction.Inspector{Compactor: w.keeper}
	w.join(w.keeper)
	return w
}

// join builds what uses the keeper.
func (w *world) join(keeper *compaction.Compactor) {
	w.t.Helper()
	var err error
	w.engine, err = agents.NewEngine(nodes.Deps{
		Titler:      (*chat.Titler)(nil),
		LoadProfile: w.options.LoadProfile, Compactor: keeper, Sessions: w.sessions, Messages: w.messages, Runs: w.runs,
		Journal: runs.NewRecorder(w.runs, events.New(events.NewLocal(0), nil, w.options.Logger), w.options.Logger), Tools: w.tools, Counter: w.counter,
		Calibrator: tokens.NewCalibrator(func(string) float64 { return 1 }),
		ToolLimits: nodes.ToolLimits{Time: time.Minute, Output: 1 << 20}, Logger: w.options.Logger,
	})
	must.Do(w.t, err)
	w.chat = chat.New(chat.Options{
		Sessions: w.sessions, Messages: w.messages, Branches: w.branches, Runs: w.runs, Events: repositories.NewEvents(w.db.Gorm),
		Feed: events.New(events.NewLocal(0), repositories.NewEvents(w.db.Gorm), w.options.Logger), Work: w, Agents: w, FindModel: registry{w}.Get, Counter: w.counter, Inspector: &compaction.Inspector{Compactor: keeper},
		DefaultAgent: "window", Limits: chat.Limits{Message: 1 << 20, Result: 4 << 20, Queued: 100, Owned: 1000, OfUser: 20}, Logger: w.options.Logger,
	})
}

// policies are agents that summarize for different reasons.
func policies(tools []string) map[string]core.Agent {
	off, llmOnly, few, fewer := false, "llm", 8, 3
	loops := core.CompactionSettings{ThresholdIterations: new(2), KeepRecentIterations: new(1), MaxContextTokens: new(2_000)}
	all := map[string]core.Agent{
		"window":  {Context: core.ContextSettings{Strategy: &llmOnly}},
		"hybrid":  {Context: core.ContextSettings{Policy: "window"}},
		"sliding": {Context: core.ContextSettings{Policy: "sliding", WindowMessages: &few, MinRecentMessages: &fewer, MaxMessagesBeforeSummary: new(int)}},
		"manual":  {Context: core.ContextSettings{AutoSummarize: &off, Strategy: &llmOnly}},
	}
	for name, a := range all {
		a.Name, a.SystemPrompt, a.Tools, a.MaxIterations, a.Compaction = name, "You are helpful.", tools, 8, loops
		all[name] = a
	}
	return all
}

// Get and List are the agents.
func (w *world) Get(name string) (core.Agent, error) {
	if a, ok := w.agents[name]; ok {
		return a, nil
	}
	return core.Agent{}, core.Errorf(core.ErrNotFound, "agent %q does not exist", name)
}

// List returns no agents: nobody asks.
func (w *world) List() []core.Agent { return nil }

// Begin notes a run that may be executed.
func (w *world) Begin(_ context.Context, accept func(worker string) (core.Accepted, error)) (core.Accepted, error) {
	a, err := accept(worker)
	if err == nil && a.Run.Status == core.RunRunning {
		w.started = append(w.started, a.Run)
	}
	return a, err
}

// Next finds nothing: no run waits here.
func (w *world) Next(context.Context, core.SessionID) {}

// Cancel finds no run at work: they are executed one after the other.
func (w *world) Cancel(core.RunID) bool { return false }

// silent is a feed that nobody watches.
type silent struct{}

func (silent) Publish(context.Context, []core.Event) {}
func (silent) Delta(context.Context, core.Event)     {}

// measured is a calibration whose counts are those of the models.
func measured() *tokens.Calibrator {
	c := tokens.NewCalibrator(func(string) float64 { return 1 })
	c.Restore([]core.Calibration{{Model: "model", Factor: 1, Samples: tokens.MeasuredAfter}, {Model: "writer", Factor: 1, Samples: tokens.MeasuredAfter}})
	return c
}

// registry is the models: "writer" makes the summaries, all others answer.
type registry struct{ w *world }

func (r registry) Get(name string) (llm.Model, error) {
	if name == "writer" {
		return llmtest.Scripted(llmtest.Step{Repeat: true, From: r.w.write}).WithInfo(llm.Info{Name: "writer", Provider: "scripted", Window: 100_000, MaxOutput: 8000}), nil
	}
	answer := func(req llm.Request) llmtest.Step { return r.w.answer(req, window-500) }
	return llmtest.Scripted(llmtest.Step{Repeat: true, From: answer}).WithInfo(llm.Info{Name: cmp.Or(name, "model"), Provider: "scripted", Window: window, MaxOutput: 500}), nil
}

// Preferred says that there is none.
func (registry) Preferred(string, llm.Preference) (llm.Model, bool) { return nil, false }

// write makes a summary: what all texts are about, and the marks of all that it read, in order.
func (w *world) write(req llm.Request) llmtest.Step {
	if w.deadline > 0 {
		w.deadline--
		return llmtest.Fail(errors.New("no summary today"))
	}
	var seen []string
	for _, m := range req.Messages {
		for _, found := range mark.FindAllString(m.Content, -1) {
			if !slices.Contains(seen, found) {
				seen = append(seen, found)
			}
		}
	}
	// In the words of the texts, and as little in a language as they are.
	return llmtest.Say("report night shift: pump, valve, sensor, seal, order, paper, visit; seal valve visit, order night sensor, paper pump shift report. " +
		"Read up to here: " + strings.Join(seen, " "))
}

// answer does what the mood says, after a look at the prompt.
func (w *world) answer(req llm.Request, usable int) llmtest.Step {
	w.checkRequest(req, usable)
	mood := ""
	if len(w.moods) > 0 {
		mood, w.moods = w.moods[0], w.moods[1:]
	}
	switch mood {
	case "tools":
		var calls []core.ToolCall
		for range 1 + w.rand.IntN(2) {
			calls = append(calls, core.ToolCall{ID: core.NewID[string](), Name: "lookup", Arguments: fmt.Sprintf(`{"q": %q}`, w.text(10))})
		}
		return llmtest.Call(calls...)
	case "fail":
		return llmtest.Fail(&llm.Error{Kind: llm.KindAuth, Provider: "scripted", Message: "no"})
	case "die":
		w.die()
		return llmtest.Fail(&llm.Error{Kind: llm.KindCanceled, Provider: "scripted", Message: "killed", Err: context.Canceled})
	}
	return llmtest.Say(w.text(20 + w.rand.IntN(150)))
}

// lookup is a tool that finds something.
func (w *world) lookup() *tools.Custom {
	return &tools.Custom{
		Definition: llm.ToolSpec{Name: "lookup", Description: "Looks something up.", Parameters: []byte(`{"type":"object"}`)}, Repeatable: true,
		Call: func(context.Context, tools.Call) (string, error) { return "found " + w.text(60+w.choice(100)), nil },
	}
}

// choice returns a number below n; tools ask for one while they are at work.
func (w *world) choice(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.IntN(n)
}

// text returns about n tokens with a new mark in front.
func (w *world) text(n int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.marks++
	words := []string{"pump", "valve", "order", "night", "shift", "report", "sensor", "seal", "paper", "visit"}
	var b strings.Builder
	fmt.Fprintf(&b, "qx%dz", w.marks)
	for range n {
		b.WriteString(" " + words[w.rand.IntN(len(words))])
	}
	return b.String()
}

// talk is a session as the test knows it.
type talk struct {
	id       core.SessionID
	known    map[core.MessageID]core.Message // every row ever seen, as it was first
	deleted  map[core.MessageID]bool
	replaced []core.Message          // messages as they were before edits in place
	pinned   map[core.MessageID]bool // when it was last looked at
	path     []core.MessageID        // as it must be
	question core.MessageID          // of the run at work
	through  int64                   // the cursor after the step before
	partial  bool                    // a summary was made without the model: it says less
}

// rows returns the log as it is stored, and the marks of each message.
func (w *world) rows(id core.SessionID) []core.Message {
	w.t.Helper()
	var rows []core.Message
	must.Do(w.t, w.db.Gorm.WithContext(w.t.Context()).Where("session_id = ?", id).Order("seq").Find(&rows).Error)
	return rows
}

// session returns the session as it is stored.
func (w *world) session(id core.SessionID) core.Session {
	w.t.Helper()
	return must.Get(w.sessions.Get(w.t.Context(), core.Tenant{Owner: owner}, id))(w.t)
}

// marksOf returns the marks in a message.
func marksOf(m core.Message) []string {
	return mark.FindAllString(m.Content+" "+fmt.Sprint(m.ToolCalls), -1)
}

// How many sequences a normal run of the tests has, and what part of them
// PostgreSQL gets.
const (
	usual         = 3 // BOBBIN_BRANCHES_SEQUENCES
	postgresShare = 5
	longest       = 30 // steps
)

// Edit and regenerate before and after the
// cursor in random sequences: the invariants of package contextwindow hold, nothing is lost.
func TestBranches(t *testing.T) {
	t.Parallel()
	sequences := seed.Setting("BOBBIN_BRANCHES_SEQUENCES", usual)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := sequences
		if d.Gorm.Name() == "postgres" {
			n = max(1, n/postgresShare)
		}
		w := newWorld(t, d)
		w.sequence(10, seed.Fixed(1, 10)) // a run that comes to its last iteration, where results are text
		for i := range uint64(n) {
			w.sequence(i, seed.Rand(t, i))
			if w.violations > 10 {
				break
			}
		}
	})
}

// sequence takes a new session through some steps and checks after each.
func (w *world) sequence(n uint64, r *rand.Rand) {
	w.t.Helper()
	w.rand = r
	w.trace = []string{"sequence " + strconv.FormatUint(n, 10)}
	names := []string{"window", "hybrid", "sliding", "manual"}
	made := must.Get(w.chat.CreateSession(w.t.Context(), tenant, core.Session{Agent: names[w.rand.IntN(len(names))], Title: "a talk"}))(w.t)
	w.talks, w.deadline = []*talk{newTalk(made.ID)}, 0
	violations := w.violations
	early := w.rand.IntN(12) // messages before anything else
	for i := range early + 10 + w.rand.IntN(longest-9) {
		name := "send"
		if i >= early {
			name = w.step()
		} else {
			w.mood()
			w.send(w.talks[0])
		}
		for _, k := range w.talks {
			w.check(k, name)
		}
		if w.violations > violations {
			return
		}
	}
}
