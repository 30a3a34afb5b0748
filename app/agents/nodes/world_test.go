package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"bobbin/app/agents/nodes"
	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
	"bobbin/tests/logtext"
	"bobbin/tests/must"
)

// world is everything around the nodes: storage in memory, a scripted model, and
// the real compactor.
type world struct {
	*coretest.Conversation
	db      *coretest.Store
	feed    *coretest.Feed
	run     *core.Run // the last one
	t       *testing.T
	model   *llmtest.Script
	writer  *llmtest.Script // makes the summaries
	profile compaction.Profile
	learned *tokens.Calibrator
	count   *tokens.Counter
	keeper  *compaction.Compactor
	tools   *tools.Set
	limits  nodes.ToolLimits
	log     *logtext.Log
	said    *said // nil = no tool needs an approval
}

// newWorld has a model of the window that gives the answers (llmtest.Scripted), an
// agent with the tools, and a session of nobody's turn.
func newWorld(t *testing.T, window int, answers ...any) *world {
	t.Helper()
	count := tokens.NewCounter()
	policy := must.Get(contextwindow.Resolve(contextwindow.Global{SummaryModel: "writer"}, core.ContextSettings{}))(t)
	w := &world{
		t: t, db: coretest.New(), feed: &coretest.Feed{}, count: count, log: &logtext.Log{},
		model:   llmtest.Scripted(answers...).WithInfo(llm.Info{Name: "scripted", Provider: "scripted", Window: window, MaxOutput: window / 8}),
		writer:  llmtest.Scripted().WithInfo(llm.Info{Name: "writer", Provider: "scripted", Window: 128_000}),
		learned: tokens.NewCalibrator(func(string) float64 { return 1 }),
		limits:  nodes.ToolLimits{Time: time.Minute, Output: 1 << 20},
	}
	w.Conversation = w.db.AddConversation(core.Session{Owner: core.LocalOwner, Agent: "tester"})
	w.profile = compaction.Profile{
		Agent:  core.Agent{Name: "tester", SystemPrompt: "You are a tester.", MaxIterations: 4},
		Policy: policy, Model: w.model, SystemPrompt: "You are a tester.",
	}
	options := compaction.Options{
		Stores: compaction.Stores{Sessions: w.db.Sessions, Messages: w.db.Messages, Summaries: w.db.Summaries, Runs: w.db.Runs, Blobs: pictures{}},
		Models: w, LoadProfile: w.Profile, Counter: count, Calibrator: w.learned, Publisher: w.feed,
		Logger: w.logger(), SummaryTime: 10 * time.Second,
	}
	w.keeper = compaction.New(options)
	return w
}

// Get is llm.Registry.Get: all summaries come from the writer.
func (w *world) Get(string) (llm.Model, error) { return w.writer, nil }

// Preferred says that there is none.
func (*world) Preferred(string, llm.Preference) (llm.Model, bool) { return nil, false }

// Profile is agents.Profiles.Profile.
func (w *world) Profile(context.Context, core.Session, string) (compaction.Profile, error) {
	return w.profile, nil
}

// Begin is chat.Titler.Begin.
func (*world) Begin(core.Session, core.Run) {}

func (w *world) logger() *slog.Logger { return slog.New(slog.NewTextHandler(w.log, nil)) }

// with gives the agent tools.
func (w *world) with(list ...*tools.Custom) *world {
	w.t.Helper()
	set := tools.NewSet(list...)
	w.tools, w.profile.Agent.Tools = set, set.Names()
	w.profile.Tools, w.profile.ToolUsage = set.Specs(set.Names()), "Use tools well."
	return w
}

// tightened reports whether the estimate for a model that was not measured was tightened.
func (w *world) tightened(model string) bool { return w.learned.Estimate(model, "").Factor > 1.1 }

// journal is runs.Recorder without its retries.
type journal struct {
	*coretest.Feed
	runs coretest.Runs
}

func (w *world) journal() journal { return journal{w.feed, w.db.Runs} }

// Append is runs.Recorder.Append: like it, it writes also when ctx has ended.
func (j journal) Append(ctx context.Context, w core.RunWrite) (core.Written, error) {
	out, err := j.Write(ctx, w)
	j.Publish(ctx, out.Events)
	return out, err
}

func (j journal) Write(ctx context.Context, w core.RunWrite) (core.Written, error) {
	return j.runs.Write(context.WithoutCancel(ctx), w)
}

// append puts a message into the log.
func (w *world) append(m core.Message) core.Message { return w.db.Say(w.Session.ID, m)[0] }

// accept returns a claimed run; its message is in the log.
func (w *world) accept(in core.RunInput) core.Run {
	w.run = w.db.StartRun(w.Session.ID, in)
	return *w.run
}

// last returns the newest message of the log.
func (w *world) last() core.Message { return w.Messages[len(w.Messages)-1] }

// records returns the model calls that were stored with the run.
func (w *world) records() (out []core.ModelCall) {
	for _, write := range w.Writes {
		out = append(out, write.ModelCalls...)
	}
	return out
}

// turns puts n finished exchanges of about so many tokens a message into the log.
func (w *world) turns(n, size int) *world {
	for i := range n {
		for _, role := range []core.Role{core.RoleUser, core.RoleAssistant} {
			m := core.Message{Role: role, Content: fmt.Sprintf("turn %d %s %s", i+1, role, strings.Repeat("word ", size))}
			m.TokenCount = w.count.Message(m)
			w.append(m)
		}
	}
	return w
}

// begin accepts a message and takes its run as far as the model call.
func (w *world) begin(content string) nodes.AgentState {
	w.t.Helper()
	m := core.Message{Role: core.RoleUser, Content: content}
	run := w.accept(core.RunInput{Content: content, Source: core.SourceAPI, TokenCount: w.count.Message(m)})
	return w.resume(run)
}

// resume takes a run through the nodes before the model call.
func (w *world) resume(run core.Run) nodes.AgentState {
	w.t.Helper()
	s := nodes.AgentState{Run: run}
	for _, node := range []func(context.Context, nodes.AgentState) (nodes.AgentState, error){
		(&nodes.ProcessMessage{Deps: w.deps()}).Run,
		(&nodes.RetrieveContext{Deps: w.deps()}).Run,
		(&nodes.SaveUserMessage{Deps: w.deps()}).Run,
	} {
		var err error
		if s, err = node(w.t.Context(), s); err != nil {
			w.t.Fatal(err)
		}
	}
	return s
}

// deps are what the nodes are made of.
func (w *world) deps() nodes.Deps {
	return nodes.Deps{
		LoadProfile: w.Profile, Titler: w, Sessions: w.db.Sessions, Messages: w.db.Messages, Compactor: w.keeper, Journal: w.journal(), Tools: w.tools,
		Runs: w.db.Runs, Counter: w.count, Calibrator: w.learned, ToolLimits: w.limits, Logger: w.logger(), Observer: core.NoObserver{},
	}
}

// call runs llm_node.
func (w *world) call(ctx context.Context, s nodes.AgentState) (nodes.AgentState, error) {
	return (&nodes.LLM{Deps: w.deps()}).Run(ctx, s)
}

// mustCall is call that succeeds.
func (w *world) mustCall(s nodes.AgentState) nodes.AgentState {
	w.t.Helper()
	s = must.Get(w.call(w.t.Context(), s))(w.t)
	return s
}

// use runs tool_node.
func (w *world) use(ctx context.Context, s nodes.AgentState) (nodes.AgentState, error) {
	o := w.deps()
	if w.said != nil {
		w.said.RunStore, o.Runs = o.Runs, w.said
	}
	return (&nodes.Tools{Deps: o}).Run(ctx, s)
}

// mustUse is use that succeeds.
func (w *world) mustUse(s nodes.AgentState) nodes.AgentState {
	w.t.Helper()
	s = must.Get(w.use(w.t.Context(), s))(w.t)
	return s
}

// size counts a request as a provider would.
func (w *world) size(req llm.Request) int {
	n := w.count.Tools(req.Tools) + 3
	for _, b := range req.System {
		n += w.count.Text(b)
	}
	for _, m := range req.Messages {
		n += w.count.Message(core.Message{Role: m.Role, Content: m.Content, ToolCalls: m.ToolCalls})
	}
	return n
}

// kindOf returns the kind of a model's error.
func kindOf(err error) llm.ErrorKind {
	if e := llm.AsError(err); e != nil {
		return e.Kind
	}
	return ""
}

// toolOf is a tool of a test.
func toolOf(name string, do func(ctx context.Context, c tools.Call) (string, error)) *tools.Custom {
	return &tools.Custom{Definition: llm.ToolSpec{Name: name, Description: "does " + name, Parameters: []byte(`{"type":"object","properties":{}}`)}, Repeatable: true, Call: do}
}

// onceOf is a tool that must not be called twice.
func onceOf(name string, do func(ctx context.Context, c tools.Call) (string, error)) *tools.Custom {
	t := toolOf(name, do)
	t.Repeatable = false
	return t
}

// says is a tool that always gives the same result.
func says(name, text string) *tools.Custom {
	return toolOf(name, func(context.Context, tools.Call) (string, error) { return text, nil })
}

// breaks is a tool that always fails.
func breaks(name, text string) *tools.Custom {
	return toolOf(name, func(context.Context, tools.Call) (string, error) { return "", errors.New(text) })
}
