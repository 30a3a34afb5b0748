// Package integration_test runs the whole agent graph with mocked repositories (coretest): no
// database, no server, no network (S3).
package integration_test

import (
	"fmt"
	"log/slog"
	"strings"
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
	"bobbin/app/events"
	"bobbin/app/runs"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// world is the agent graph with mocked repositories and a scripted model.
type world struct {
	*coretest.Conversation
	t      *testing.T
	db     *coretest.Store
	run    *core.Run // the last one
	engine *agents.Engine
	keeper *compaction.Compactor
	model  *llmtest.Script
	writer *llmtest.Script // makes the summaries
	agent  core.Agent
	count  *tokens.Counter
}

// agentSource is a catalog of one agent, whatever its name.
type agentSource struct {
	core.AgentCatalog
	agent *core.Agent
}

// Get is catalog.Catalog.Get.
func (a agentSource) Get(name string) (core.Agent, error) {
	agent := *a.agent
	agent.SystemPrompt += " Your name is " + name + "."
	return agent, nil
}

// modelSource is the registry of two models.
type modelSource struct{ answer, summary *llmtest.Script }

// Get returns the model by its name.
func (m modelSource) Get(name string) (llm.Model, error) {
	if name == "summarizer" {
		return m.summary, nil
	}
	return m.answer, nil
}

// Preferred says that there is none.
func (modelSource) Preferred(string, llm.Preference) (llm.Model, bool) { return nil, false }

func newWorld(t *testing.T, window int, answers ...any) *world {
	t.Helper()
	count := tokens.NewCounter()
	w := &world{
		t: t, db: coretest.New(), count: count,
		model:  llmtest.Scripted(answers...).WithInfo(llm.Info{Name: "scripted", Provider: "scripted", Window: window, MaxOutput: window / 8}),
		writer: llmtest.Scripted().WithInfo(llm.Info{Name: "summarizer", Provider: "scripted", Window: 128_000}),
		agent:  core.Agent{Name: "tester", SystemPrompt: "You are a tester.", Tools: []string{"calculator"}, MaxIterations: 4},
	}
	w.Conversation = w.db.AddConversation(core.Session{Owner: core.LocalOwner, Agent: "tester"})
	w.build()
	return w
}

// build puts the graph together as app.go does.
func (w *world) build() {
	w.t.Helper()
	set := tools.NewSet(tools.NewCalculator())
	var err error
	logger := slog.New(slog.DiscardHandler)
	feed := events.New(events.NewLocal(0), nil, logger)
	calibrator := tokens.NewCalibrator(func(string) float64 { return 1 })
	models := modelSource{answer: w.model, summary: w.writer}
	profiles := agents.NewProfiles(agentSource{agent: &w.agent}, models, set, contextwindow.Global{SummaryModel: "summarizer"})
	w.keeper = compaction.New(compaction.Options{
		Stores: compaction.Stores{Sessions: w.db.Sessions, Messages: w.db.Messages, Summaries: w.db.Summaries, Runs: w.db.Runs},
		Models: models, LoadProfile: profiles.Profile, Counter: w.count, Calibrator: calibrator, Publisher: feed,
		Logger: logger, SummaryTime: 10 * time.Second,
	})
	w.engine, err = agents.NewEngine(nodes.Deps{
		Titler:      (*chat.Titler)(nil),
		LoadProfile: profiles.Profile, Compactor: w.keeper, Sessions: w.db.Sessions, Messages: w.db.Messages, Runs: w.db.Runs,
		Journal: runs.NewRecorder(w.db.Runs, feed, logger), Tools: set, Counter: w.count, Calibrator: calibrator,
		ToolLimits: nodes.ToolLimits{Time: time.Minute, Output: 1 << 20}, Logger: logger,
	})
	must.Do(w.t, err)
}

// ask runs the graph for one message.
func (w *world) ask(content string) error {
	w.t.Helper()
	return w.engine.Execute(w.t.Context(), core.Claimed{Run: w.accept(content)})
}

// accept returns a claimed run for a message, which is in the log.
func (w *world) accept(content string) core.Run {
	n := w.count.Message(core.Message{Role: core.RoleUser, Content: content})
	w.run = w.db.StartRun(w.Session.ID, core.RunInput{Content: content, Source: core.SourceAPI, TokenCount: n})
	return *w.run
}

// turns puts n finished exchanges of about so many tokens each into the log.
func (w *world) turns(n, size int) {
	for i := range n {
		for _, role := range []core.Role{core.RoleUser, core.RoleAssistant} {
			m := core.Message{Role: role, Content: fmt.Sprintf("turn %d %s %s", i+1, role, strings.Repeat("word ", size/2))}
			m.TokenCount = w.count.Message(m)
			w.db.Say(w.Session.ID, m)
		}
	}
}

func (w *world) roles() []core.Role {
	var out []core.Role
	for _, m := range w.Messages {
		out = append(out, m.Role)
	}
	return out
}

// S3, W1, W12 (first message).
func TestFirstMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8192, "hello back")
	must.Do(t, w.ask("hello"))
	compare.Equal(t, "log", []core.Role{core.RoleUser, core.RoleAssistant}, w.roles())
	compare.Equal(t, "status", core.RunSucceeded, w.run.Status)
	req := w.model.Requests()[0]
	if len(req.Messages) != 1 || req.Messages[0].Content != "hello" || !strings.HasPrefix(req.System[0], "You are a tester.") {
		t.Errorf("prompt %+v, want the system prompt and the message", req)
	}
	compare.Equal(t, "a short conversation called the summarizer", 0, len(w.writer.Requests()))
}

// W3: everything after the cursor, never "the last ten".
func TestAllMessagesAfterTheCursorAreSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 128_000, "ok")
	w.turns(30, 20)
	must.Do(t, w.ask("and now?"))
	compare.Equal(t, "messages of the prompt", 61, len(w.model.Requests()[0].Messages))
}

// W5, W6, W7, W10: over the threshold the oldest are summarized, the session row is
// updated, the next request reads only newer messages, nothing is deleted.
func TestSummarizeOverThreshold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8192, "first answer", "second answer")
	w.writer.Add(summaryText)
	w.turns(30, 220)
	before := len(w.Messages)
	must.Do(t, w.ask("what next?"))
	must.True(t, w.Session.SummaryVersion == 1 && w.Session.ConversationSummary != nil, "session %+v, want a summary", w.Session)
	compare.Equal(t, "messages of the log: nothing is deleted", before+2, len(w.Messages))
	system := w.model.Requests()[0].System
	if len(system) != 3 || !strings.HasPrefix(system[1], "Summary of earlier conversation:") || !strings.Contains(system[1], "Test the tester") {
		t.Errorf("system blocks %q, want prompt, summary, tool usage", system)
	}
	w.Cursors = nil
	must.Do(t, w.ask("and then?"))
	if len(w.Cursors) == 0 || w.Cursors[0] != *w.Session.SummaryThroughID {
		t.Errorf("messages were read after %v, want only after the cursor %s", w.Cursors, *w.Session.SummaryThroughID)
	}
	compare.Equal(t, "summaries: want the second turn is far from the threshold", 1, len(w.writer.Requests()))
}

// W6: the summary is extended, the history is not read again.
func TestSummaryIsExtended(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8192, "a", "b")
	w.writer.Add("FIRST SUMMARY\n"+summaryText, "SECOND SUMMARY\n"+summaryText)
	w.turns(30, 220)
	must.Do(t, w.ask("one"))
	w.turns(20, 220)
	must.Do(t, w.ask("two"))
	reqs := w.writer.Requests()
	must.True(t, len(reqs) == 2, "%d summaries, want 2", len(reqs))
	text := fmt.Sprint(reqs[1])
	if !strings.Contains(text, "FIRST SUMMARY") || strings.Contains(text, "[1] user: turn 1 user") {
		t.Errorf("the second summary request does not extend the first: %.500s", text)
	}
	compare.Equal(t, "beginning of the second version", w.Summaries[0].ThroughSeq+1, w.Summaries[1].FromSeq)
}

// A run is done by the agent that it was accepted for, also when the session was given another one
// while it waited.
func TestAgentIsChangedWhileARunWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8192, "hello back")
	run := w.accept("hello")
	run.Agent = "former"
	must.Do(t, w.engine.Execute(t.Context(), core.Claimed{Run: run}))
	compare.Contains(t, "the prompt of the run's agent", "Your name is former.", w.model.Requests()[0].System[0])
}

// summaryText is an answer that may be stored as a summary.
const summaryText = "## Goal\nTest the tester.\n\n## Facts\n- turn 1 happened, and each turn after it said the same few words again; nobody asked for anything else.\n\n" +
	"## Decisions\n- The tester goes on in the same manner; every answer stays short, no tool is needed for it, and nobody else takes part before Friday.\n\n" +
	"## Done and open\n- Done: what was said so far. Open: how many turns there are to be, and who reads what comes out of it."
