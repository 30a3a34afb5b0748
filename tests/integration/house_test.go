package integration_test

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
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
	"bobbin/app/events"
	"bobbin/app/runs"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// house is one process: the graph, and what keeps its runs alive, with storage in
// memory. Several may share one storage.
type house struct {
	*settings
	t       *testing.T
	db      *coretest.Store
	service *runs.Runner
	session core.Session
	stop    func() // stops the process and waits; may be called more than once
}

// settings are the agents and models, which an operator may change.
type settings struct {
	mu     sync.Mutex
	agents map[string]core.Agent // guarded by mu
	models map[string]llm.Model  // guarded by mu; "" is the default, "writer" makes the summaries
	tools  []tools.Tool
}

// newSettings has the agent "assistant" with the tools, and a model of the window
// that gives the answers.
func newSettings(window int, model *llmtest.Script, list ...tools.Tool) *settings {
	model.WithInfo(llm.Info{Name: "scripted", Provider: "scripted", Window: window, MaxOutput: window / 8})
	s := &settings{tools: list, agents: map[string]core.Agent{}, models: map[string]llm.Model{
		"": model, "writer": llmtest.Scripted(llmtest.Step{Text: []string{summaryText}, Repeat: true}),
	}}
	agent := core.Agent{Name: "assistant", SystemPrompt: "You are helpful.", MaxIterations: 4}
	for _, tool := range list {
		agent.Tools = append(agent.Tools, tool.Spec().Name)
	}
	s.agents["assistant"] = agent
	return s
}

// catalog is settings as catalog.Catalog.
type catalog struct {
	core.AgentCatalog
	*settings
}

func (s catalog) Get(name string) (core.Agent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a, ok := s.agents[name]; ok {
		return a, nil
	}
	return core.Agent{}, core.Errorf(core.ErrNotFound, "agent %q does not exist", name)
}

// registry is settings as llm.Registry.
type registry struct{ *settings }

func (s registry) Get(name string) (llm.Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.models[name]; ok {
		return m, nil
	}
	return nil, core.Errorf(core.ErrNotFound, "model %q is not configured", name)
}

// Preferred says that there is none.
func (registry) Preferred(string, llm.Preference) (llm.Model, bool) { return nil, false }

// change changes the settings.
func (s *settings) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// newHouse starts a process. Call it in a synctest bubble.
func newHouse(t *testing.T, db *coretest.Store, worker string, s *settings) *house {
	t.Helper()
	count := tokens.NewCounter()
	set := must.Get(tools.NewSet(s.tools...))(t)
	logger := slog.New(slog.DiscardHandler)
	calibrator := tokens.NewCalibrator(func(string) float64 { return 1 })
	profiles := agents.NewProfiles(catalog{settings: s}, registry{s}, set, contextwindow.Global{SummaryModel: "writer"})
	feed := events.New(events.NewLocal(0), nil, logger)
	journal := runs.NewRecorder(db.Runs, feed, logger)
	keeper := compaction.New(compaction.Options{
		Stores: compaction.Stores{Sessions: db.Sessions, Messages: db.Messages, Summaries: db.Summaries, Runs: db.Runs},
		Models: registry{s}, LoadProfile: profiles.Profile, Counter: count, Calibrator: calibrator, Publisher: feed,
		Logger: logger, SummaryTime: 10 * time.Second, BackgroundTime: time.Minute,
	})
	engine, err := agents.NewEngine(nodes.Deps{
		Titler:      (*chat.Titler)(nil),
		LoadProfile: profiles.Profile, Compactor: keeper, Sessions: db.Sessions, Messages: db.Messages, Tails: nodes.NewTailCache(), Runs: db.Runs,
		Journal: journal, Tools: set, Counter: count, Calibrator: calibrator,
		ToolLimits: nodes.ToolLimits{Time: time.Minute, Output: 1 << 20}, Logger: logger,
	})
	must.Do(t, err)
	h := &house{settings: s, t: t, db: db, service: runs.New(runs.Options{
		Store: db.Runs, Messages: db.Messages, Execute: engine.Execute, Journal: journal, Counter: count,
		Worker: worker, Limits: runs.Limits{Grace: 5 * time.Second}, Logger: logger,
	})}
	h.session = db.AddSession()
	h.open()
	return h
}

// open lets the process run until stop, or the end of the test.
func (h *house) open() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := h.service.Run(ctx); err != nil {
			h.t.Errorf("got error %v from Run, want nil", err)
		}
	}()
	h.stop = func() {
		cancel()
		<-done
	}
	h.t.Cleanup(func() {
		h.stop()
		for _, broken := range h.db.Check() {
			h.t.Errorf("broken promise: %s", broken)
		}
	})
	synctest.Wait() // it has taken over what there was
}

// send accepts a message; empty model = the session's.
func (h *house) send(content, model string) core.Run {
	h.t.Helper()
	session := must.Get(h.db.Sessions.Get(h.t.Context(), core.Tenant{Owner: "ann"}, h.session.ID))(h.t)
	a, err := h.service.Begin(h.t.Context(), func(worker string) (core.Accepted, error) {
		return h.db.Runs.Accept(h.t.Context(), core.Tenant{Owner: "ann"}, core.AcceptRun{
			SessionID: h.session.ID, Agent: cmp.Or(session.Agent, "assistant"), Model: model, Worker: worker,
			Input: core.RunInput{Content: content, Source: core.SourceWeb, TokenCount: 4 + len(content)/4},
		})
	})
	must.Do(h.t, err)
	return a.Run
}

// cancel does what chat does with a cancel.
func (h *house) cancel(run core.Run) {
	h.t.Helper()
	if _, _, err := h.db.Runs.RequestCancel(h.t.Context(), core.Tenant{Owner: "ann"}, run.ID); err != nil {
		h.t.Fatal(err)
	}
	h.service.Cancel(run.ID)
	synctest.Wait()
}

// want checks how a run ended; code is that of its error.
func (h *house) want(run core.Run, status core.RunStatus, code string) core.Run {
	h.t.Helper()
	got := h.db.Run(run.ID)
	have := ""
	if got.Error != nil {
		have = got.Error.Code
	}
	if got.Status != status || have != code {
		h.t.Errorf("got run %.20q %s with error %+v, want %s %q", run.Input.Content, got.Status, got.Error, status, code)
	}
	return got
}

// log returns "role content" of the session's messages, the content cut.
func (h *house) log() []string {
	var out []string
	for _, m := range h.db.Log(h.session.ID) {
		out = append(out, string(m.Role)+" "+core.Clip(m.Content, 20))
	}
	return out
}

// simulate runs f with a clock of its own.
func simulate(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

// summaryText is an answer that may be stored as a summary.
const summaryText = "## Goal\nTest the tester.\n\n## Facts\n- turn 1 happened, and each turn after it said the same few words again; nobody asked for anything else.\n\n" +
	"## Decisions\n- The tester goes on in the same manner; every answer stays short, no tool is needed for it, and nobody else takes part before Friday.\n\n" +
	"## Done and open\n- Done: what was said so far. Open: how many turns there are to be, and who reads what comes out of it."
