package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/app/eval"
	"bobbin/app/eval/samples"
	"bobbin/app/tools"
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
func Evaluate(ctx context.Context, cfg config.Config, logger *slog.Logger, e Evaluation) (eval.Report, error) {
	v := &evaluator{Evaluation: e, cfg: cfg, log: logger}
	if err := v.prepare(ctx); err != nil {
		return eval.Report{}, err
	}
	v.report.Policies = make([]eval.Result, len(v.agents))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(runtime.GOMAXPROCS(0), 1))
	for i := range v.agents {
		group.Go(func() (err error) {
			v.report.Policies[i], err = v.replay(ctx, i)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return eval.Report{}, err
	}
	v.report.Complete()
	return v.report, nil
}

// EvaluationPolicies returns the names of the policies.
func EvaluationPolicies() []string { return contextwindow.PresetNames() }

// EvaluationSamples returns the conversations that come with Bobbin.
func EvaluationSamples() []samples.Sample { return samples.List() }

// EvaluationSample returns one of them with its messages.
func EvaluationSample(name string) (samples.Sample, []byte, error) { return samples.Get(name) }

// evaluator is an Evaluation at work.
type evaluator struct {
	Evaluation
	cfg    config.Config
	log    *slog.Logger
	count  counter
	talk   eval.Conversation
	facts  []eval.Fact
	info   llm.Info     // of the model that is stood in for
	agents []core.Agent // one for each policy
	tools  *tools.Set
	sums   llm.Model // makes the summaries; nil = nobody
	report eval.Report

	mu   sync.Mutex
	done map[int]int // guarded by mu; turns by policy
}

// prepare reads all that can be wrong.
func (v *evaluator) prepare(ctx context.Context) error {
	exact, err := tokens.NewCounter()
	if err != nil {
		return fmt.Errorf("token counter: %w", err)
	}
	v.count, v.done = eval.Steady(exact), map[int]int{}
	v.Summarizer = cmp.Or(v.Summarizer, SummarizerScripted)
	messages, err := v.read(ctx)
	if err != nil {
		return err
	}
	if err := v.readFacts(messages); err != nil {
		return err
	}
	if err := v.setTools(); err != nil {
		return err
	}
	agent, err := v.agent()
	if err != nil {
		return err
	}
	if err := v.setModel(agent); err != nil {
		return err
	}
	if err := v.setSummarizer(ctx); err != nil {
		return err
	}
	return v.setPolicies(agent)
}

// replay replays under one policy.
func (v *evaluator) replay(ctx context.Context, i int) (result eval.Result, err error) {
	player := eval.NewPlayer(v.info, v.count)
	spent := func() eval.Expense { return eval.Expense{} }
	settings := stageSettings{cfg: v.cfg, logger: v.log, counter: v.count, agent: v.agents[i], tools: v.tools, player: player}
	if v.sums != nil {
		metered := eval.Meter(v.sums, v.count)
		settings.summarizer, spent = metered, metered.Spent
	}
	st, err := openStage(ctx, settings)
	if err != nil {
		return eval.Result{}, err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	return eval.Replay(ctx, eval.Replayed{
		Policy: v.Policies[i], Conversation: v.talk, Facts: v.facts, Bobbin: st, Player: player,
		Summarizer: v.Summarizer, Spent: spent, Progress: func(turns int) { v.progress(i, turns) },
	})
}

// progress tells how far all replays are together.
func (v *evaluator) progress(policy, turns int) {
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
