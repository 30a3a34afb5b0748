package eval

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"bobbin/app/agents"
	"bobbin/app/agents/tools"
	"bobbin/app/chat/transfer"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/demo"
	"bobbin/app/core/tokens"
	"bobbin/app/telemetry"
	"bobbin/app/wire"
)

// Evaluation is a conversation that is to be replayed, and how.
type Evaluation struct {
	Source     string                // what the report calls it
	Data       []byte                // its messages, as an import takes them
	Format     core.ImportFormat     // of Data
	Facts      []byte                // a list of facts; nil = those that the file plants, else what the ledger finds
	Policies   []string              // empty = the agent's own
	Model      string                // whose window and whose counting; empty = the agent's, else EvaluationModel
	Window     int                   // in place of the model's; 0 = the model's
	Summarizer string                // SummarizerScripted, SummarizerExtractive or a model's name; empty = scripted
	Agent      string                // a file; empty = an agent with the conversation's own prompt and tools
	Progress   func(done, turns int) // is told of turns, of all policies together; nil = nobody is
}

// Who makes the summaries of an evaluation, besides models.
const (
	SummarizerScripted   = "scripted"   // the offline model: it copies sentences
	SummarizerExtractive = "extractive" // no model at all
)

// EvaluationModel is the model whose window an evaluation has unless one is named.
const EvaluationModel = "gpt-4o-mini"

// MinEvaluationWindow is the smallest window that can be asked for.
const MinEvaluationWindow = 1_024

// Evaluate replays a conversation under each policy, each in a Bobbin of its own.
// Nothing but a summarizer that is named is called over the network. Errors say what
// is wrong with the conversation or the settings; a conversation that could not go on
// under a policy is no error but in the report.
func Evaluate(ctx context.Context, cfg config.Config, logger *slog.Logger, e Evaluation) (Report, error) {
	if int64(len(e.Data)) > int64(cfg.Limits.ImportBytes) {
		return Report{}, core.Errorf(core.ErrTooLarge, "the file is larger than %s (limits.import_bytes)", cfg.Limits.ImportBytes)
	}
	e.Policies = slices.Clone(e.Policies)
	v := &evaluator{Evaluation: e, cfg: cfg, log: logger}
	exact := tokens.NewCounter()
	v.count, v.done = Steady(exact), map[string]int{}
	v.Summarizer = cmp.Or(v.Summarizer, SummarizerScripted)
	messages, err := v.readConversation(ctx)
	if err != nil {
		return Report{}, err
	}
	if err := v.readFacts(messages); err != nil {
		return Report{}, err
	}
	v.setTools()
	agent, err := v.makeAgent()
	if err != nil {
		return Report{}, err
	}
	if err := v.setModel(agent); err != nil {
		return Report{}, err
	}
	if err := v.setSummarizer(ctx); err != nil {
		return Report{}, err
	}
	if err := v.setPolicies(agent); err != nil {
		return Report{}, err
	}
	v.report.Policies = make([]Result, len(v.agents))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(runtime.GOMAXPROCS(0), 1))
	for i := range v.agents {
		group.Go(func() (err error) {
			v.report.Policies[i], err = v.replayPolicy(ctx, i)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Report{}, err
	}
	v.report.Complete()
	return v.report, nil
}

// Policies returns the names of the policies.
func Policies() []string { return contextwindow.PresetNames() }

// evaluator is an Evaluation at work.
type evaluator struct {
	Evaluation
	cfg    config.Config
	log    *slog.Logger
	count  llm.TokenCounter
	talk   Conversation
	facts  []Fact
	info   llm.Info     // of the model that is stood in for
	agents []core.Agent // one for each policy
	tools  *tools.Set
	sums   llm.Model // makes the summaries; nil = nobody
	report Report

	mu   sync.Mutex
	done map[string]int // guarded by mu; turns by policy
}

// replayPolicy replays under one policy.
func (v *evaluator) replayPolicy(ctx context.Context, i int) (result Result, err error) {
	dir, err := os.MkdirTemp("", "bobbin-eval-*")
	if err != nil {
		return result, fmt.Errorf("temporary folder: %w", err)
	}
	cfg := v.cfg
	cfg.Database.URL, cfg.Titles, cfg.DefaultAgent = config.NewSecret("sqlite://"+filepath.Join(dir, "replay.db")), false, v.agents[i].Name
	cfg.Database.Durability, cfg.Auth = config.DurabilityNormal, config.Auth{} // nothing of it is kept
	st := &stage{
		evaluator: v, agent: v.agents[i], player: NewPlayer(v.info, v.count), close: func() error { return os.RemoveAll(dir) },
		Deps: wire.Deps{Config: cfg, Logger: v.log, Counter: v.count, Telemetry: telemetry.New(telemetry.Options{}), Worker: "eval"},
	}
	defer func() { err = errors.Join(err, st.close()) }()
	if err := st.buildParts(ctx); err != nil {
		return result, err
	}
	return st.replay(ctx, v.Policies[i])
}

// tellProgress notes that so many turns were replayed under a policy.
func (v *evaluator) tellProgress(policy string, turns int) {
	if v.Progress == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.done[policy] = turns
	sum := 0
	for _, n := range v.done {
		sum += n
	}
	v.Progress(sum, len(v.agents)*len(v.talk.Turns))
}

// readConversation reads the conversation.
func (v *evaluator) readConversation(ctx context.Context) ([]core.Message, error) {
	reader := transfer.New(transfer.Options{Counter: v.count, Limits: wire.TransferLimits(v.cfg)})
	messages, about, err := reader.Read(ctx, core.ImportMessages{Body: bytes.NewReader(v.Data), Format: v.Format})
	if err != nil {
		return nil, err
	}
	v.talk = Split(messages)
	if len(v.talk.Turns) == 0 {
		return nil, core.Errorf(core.ErrInvalid, "the conversation has no message of a user: there is nothing to replay")
	}
	if most := v.talk.Iterations(); most > maxReplayedSteps {
		return nil, core.Errorf(core.ErrInvalid, "a turn of the conversation has %d model calls, at most %d can be replayed", most, maxReplayedSteps)
	}
	all := v.talk.Messages()
	v.report = Report{Source: v.Source, Messages: len(all), Turns: len(v.talk.Turns), StandIns: v.talk.StandIns}
	for _, m := range all {
		v.report.Tokens += v.count.Message(m)
	}
	v.addNotice(about.Skipped, "one message of another branch, or a deleted one, is not replayed", "%d messages of other branches, or deleted ones, are not replayed")
	v.addNotice(about.LeftOut, "one image or other file is not there; its message says so", "%d images or other files are not there; their messages say so")
	v.addNotice(v.talk.StandIns, "one tool result or answer is not there; a word stands in for it", "%d tool results or answers are not there; a word stands in for each")
	return messages, nil
}

// maxReplayedSteps is the most model calls of a turn: what an agent can be given.
const maxReplayedSteps = 999

// addNotice adds a notice about one or several of something.
func (v *evaluator) addNotice(n int, one, several string) {
	switch {
	case n == 1:
		v.report.Notices = append(v.report.Notices, one)
	case n > 1:
		v.report.Notices = append(v.report.Notices, fmt.Sprintf(several, n))
	}
}

// readFacts reads or finds the facts.
func (v *evaluator) readFacts(messages []core.Message) (err error) {
	switch {
	case v.Facts != nil:
		v.report.FactsFrom = FactsGiven
		v.facts, err = ReadFacts(bytes.NewReader(v.Facts))
	default:
		v.report.FactsFrom = FactsOfFile
		v.facts, err = PlantedFacts(messages)
	}
	if err != nil {
		return err
	}
	if len(v.facts) == 0 && v.report.FactsFrom == FactsOfFile {
		v.report.FactsFrom = FactsOfLedger
		v.facts = LedgerFacts(v.talk.Messages())
	}
	return CheckFacts(v.facts, v.talk.Messages())
}

// setTools makes the built-in tools, and those that the conversation called, answer
// as recorded.
func (v *evaluator) setTools() {
	results := map[string]string{}
	for _, t := range v.talk.Turns {
		for _, s := range t.Steps {
			for _, r := range s.Results {
				results[r.ToolCallID] = r.Content
			}
		}
	}
	builtin := wire.NewTools(v.cfg, wire.ToolParts{})
	var list []*tools.Custom
	for _, spec := range builtin.Specs(builtin.Names()) {
		list = append(list, recorded(spec, results))
	}
	for _, name := range v.talk.Tools {
		if !slices.Contains(builtin.Names(), name) {
			spec := llm.ToolSpec{Name: name, Description: "A tool of the recorded conversation.", Parameters: json.RawMessage(`{"type":"object"}`)}
			list = append(list, recorded(spec, results))
		}
	}
	v.tools = tools.NewSet(list...)
}

// makeAgent returns the agent that has the conversation: of the file, with the tools
// that the conversation called; else one with the conversation's own prompt.
func (v *evaluator) makeAgent() (core.Agent, error) {
	var agent core.Agent
	var err error
	if v.Agent != "" {
		agent, err = agents.LoadAgentFile(v.Agent, agents.KnownParts{Tools: v.tools.Names(), ToolsDir: wire.ToolsDir(v.cfg), Kinds: core.ToolKinds(), Global: wire.GlobalContext(v.cfg)})
		if err != nil {
			return agent, core.Errorf(core.ErrInvalid, "--agent: %v", err)
		}
	} else {
		var shipped *agents.Catalog
		if shipped, err = agents.LoadCatalog("", agents.KnownParts{}); err != nil {
			return agent, err
		}
		if agent, err = shipped.Get(config.Default().DefaultAgent); err != nil {
			return agent, err
		}
		agent.SystemPrompt = cmp.Or(v.talk.System, agent.SystemPrompt)
		agent.Tools = []string{core.ToolReadResult, core.ToolSearchHistory}
	}
	for _, name := range v.talk.Tools {
		if !slices.Contains(agent.Tools, name) {
			agent.Tools = append(slices.Clone(agent.Tools), name)
		}
	}
	if !slices.Contains(agent.Tools, core.ToolSearchHistory) {
		v.report.Notices = append(v.report.Notices, "the agent does not have the tool search_history: nothing counts as found by search")
	}
	agent.FallbackModels, agent.MaxIterations = nil, max(agent.MaxIterations, v.talk.Iterations()+1)
	return agent, nil
}

// setModel finds the model that is stood in for.
func (v *evaluator) setModel(agent core.Agent) error {
	name := cmp.Or(v.Model, agent.Model, EvaluationModel)
	if v.Window != 0 && v.Window < MinEvaluationWindow {
		return core.Errorf(core.ErrInvalid, "--window: %d is too small; at least %d", v.Window, MinEvaluationWindow)
	}
	v.info = llm.Info{Name: name, Provider: stageProvider, Window: v.Window, PriorFactor: 1}
	known, ok := tokens.Lookup(name)
	switch i := slices.IndexFunc(v.cfg.Models, func(m config.Model) bool { return m.Name == name }); {
	case i >= 0:
		m := v.cfg.Models[i]
		known, _ = tokens.Lookup(m.Model)
		v.info.Window = cmp.Or(v.Window, m.ContextWindow, known.Window)
		v.info.MaxOutput, v.info.PriorFactor = cmp.Or(m.MaxOutputTokens, known.MaxOutput), cmp.Or(m.PriorFactor(), known.Factor, 1)
	case name == "demo":
		d := demo.New(v.count, 0).Info()
		v.info.Window, v.info.MaxOutput = cmp.Or(v.Window, d.Window), d.MaxOutput
	case ok:
		v.info.Window, v.info.MaxOutput, v.info.PriorFactor = cmp.Or(v.Window, known.Window), known.MaxOutput, cmp.Or(known.Factor, 1)
	case v.Window == 0:
		return core.Errorf(core.ErrInvalid, "--model: %q is not known; say how large its window is with --window", name)
	}
	v.info.Window = cmp.Or(v.info.Window, tokens.DefaultWindow)
	v.info.MaxOutput = min(v.info.MaxOutput, v.info.Window)
	v.report.Model, v.report.Window = name, v.info.Window
	return nil
}

// setSummarizer opens who makes the summaries.
func (v *evaluator) setSummarizer(ctx context.Context) error {
	switch v.Summarizer {
	case SummarizerExtractive:
		return nil
	case SummarizerScripted:
		v.cfg.Limits.SummaryTime, v.cfg.Limits.BackgroundSummaryTime = time.Hour, time.Hour // by no clock, so that each replay is the same
		v.sums = scripted{demo.New(v.count, 0), v.info.Window}
		return nil
	}
	models, err := wire.OpenModels(ctx, v.cfg, wire.ModelOptions{Counter: v.count, Logger: v.log})
	if err != nil {
		return err
	}
	v.cfg.Limits.SummaryTime = max(v.cfg.Limits.SummaryTime, time.Minute) // nobody waits
	if v.sums, err = models.Get(v.Summarizer); err != nil {
		return core.Errorf(core.ErrInvalid, "--summarizer: %v", err)
	}
	return nil
}

// scripted is the offline model as large as the one that is stood in for.
type scripted struct {
	*demo.Model
	window int
}

// Info describes the model.
func (s scripted) Info() llm.Info {
	info := s.Model.Info()
	info.Name, info.Provider, info.Window = SummarizerScripted, stageProvider, s.window
	return info
}

// setPolicies makes an agent for each policy.
func (v *evaluator) setPolicies(agent core.Agent) error {
	own := cmp.Or(agent.Context.Policy, contextwindow.DefaultPolicy)
	if len(v.Policies) == 0 {
		v.Policies = []string{own}
	}
	for i, name := range v.Policies {
		if slices.Contains(v.Policies[:i], name) {
			return core.Errorf(core.ErrInvalid, "--policy: %s is there twice", name)
		}
		a := agent
		if name != own { // the preset as it is
			a.Context = core.ContextSettings{Policy: name}
		}
		a.Compaction.SummaryModel, a.Context.SummaryModel = nil, new(stageSummarizer)
		if v.sums == nil {
			a.Context.Strategy = new(SummarizerExtractive)
		}
		if _, err := contextwindow.Resolve(wire.GlobalContext(v.cfg), a.Context); err != nil {
			return core.Errorf(core.ErrInvalid, "--policy %s: %s", name, strings.TrimPrefix(err.Error(), "context.policy "))
		}
		v.agents = append(v.agents, a)
	}
	return nil
}
