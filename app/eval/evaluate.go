package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
)

// Evaluation is a conversation that is to be replayed, and how.
type Evaluation struct {
	Source     string                         // what the report calls it
	Data       []byte                         // its messages, as an import takes them, or conversations with questions
	Format     core.ImportFormat              // of Data
	Facts      []byte                         // a list of facts; nil = those that the file plants, else what the ledger finds
	Policies   []string                       // empty = the agent's own
	Model      string                         // whose window and whose counting; empty = the agent's, else EvaluationModel
	Window     int                            // in place of the model's; 0 = the model's
	Summarizer string                         // SummarizerScripted, SummarizerExtractive or a model's name; empty = scripted
	Agent      string                         // a file; empty = an agent with the conversation's own prompt and tools
	Database   func() (url string, err error) // an empty one for each replay; nil = SQLite in a temporary folder
	Progress   func(done, turns int)          // is told of turns, of all policies together; nil = nobody is
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

// Evaluate replays a conversation under each policy, each in a Bobbin of its own; of a
// file of several conversations with questions one after the other (ReadRecalls).
// Nothing but a summarizer that is named is called over the network. Errors say what
// is wrong with the conversation or the settings; a conversation that could not go on
// under a policy is no error but in the report.
func Evaluate(ctx context.Context, cfg config.Config, logger *slog.Logger, e Evaluation) (Report, error) {
	if int64(len(e.Data)) > int64(cfg.Limits.ImportBytes) {
		return Report{}, core.Errorf(core.ErrTooLarge, "the file is larger than %s (limits.import_bytes)", cfg.Limits.ImportBytes)
	}
	recalls, err := ReadRecalls(e.Data)
	if err != nil {
		return Report{}, err
	}
	if len(recalls) == 0 {
		return (&evaluator{Evaluation: e, cfg: cfg, log: logger}).evaluatePolicies(ctx)
	}
	if e.Facts != nil {
		return Report{}, core.Errorf(core.ErrInvalid, "--facts: the file has questions of its own, with the messages that answer them")
	}
	var parts []Joined
	for i, r := range recalls {
		v := &evaluator{Evaluation: e, cfg: cfg, log: logger, recall: &r}
		v.Data, v.Format, v.Policies = r.Data, core.ImportLines, slices.Clone(e.Policies)
		if e.Progress != nil {
			v.Progress = func(done, turns int) { e.Progress(i*turns+done, len(recalls)*turns) }
		}
		report, err := v.evaluatePolicies(ctx)
		if err != nil {
			return Report{}, conversationError(fmt.Sprintf("conversation %d (%s): ", i+1, core.Clip(r.ID, 40)), err)
		}
		parts = append(parts, Joined{ID: r.ID, Report: report})
	}
	return Join(e.Source, parts), nil
}

// conversationError says in which of several conversations the error is.
func conversationError(name string, err error) error {
	var told *core.Error
	if !errors.As(err, &told) {
		return fmt.Errorf("%s%w", name, err)
	}
	named := *told
	named.Message = name + told.Message
	return &named
}

// evaluatePolicies replays one conversation under each policy.
func (v *evaluator) evaluatePolicies(ctx context.Context) (Report, error) {
	if err := v.prepareInput(ctx); err != nil {
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

// EvaluationPolicies returns the names of the policies.
func EvaluationPolicies() []string { return contextwindow.PresetNames() }

// EvaluationSamples returns the conversations that come with Bobbin.
func EvaluationSamples() []Sample { return List() }

// EvaluationSample returns one of them with its messages.
func EvaluationSample(name string) (Sample, []byte, error) { return Get(name) }

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
	recall *Recall // where the conversation and its questions come from; nil = from an import

	mu   sync.Mutex
	done map[int]int // guarded by mu; turns by policy
}

// prepareInput reads all that can be wrong.
func (v *evaluator) prepareInput(ctx context.Context) error {
	exact := tokens.NewCounter()
	v.count, v.done = Steady(exact), map[int]int{}
	v.Summarizer = cmp.Or(v.Summarizer, SummarizerScripted)
	messages, err := v.readConversation(ctx)
	if err != nil {
		return err
	}
	if err := v.readFacts(messages); err != nil {
		return err
	}
	if err := v.setTools(); err != nil {
		return err
	}
	agent, err := v.makeAgent()
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

// replayPolicy replays under one policy.
func (v *evaluator) replayPolicy(ctx context.Context, i int) (result Result, err error) {
	err = v.withStage(ctx, i, func(_ *stage, r Replayed) (err error) {
		result, err = Replay(ctx, r)
		return err
	})
	return result, err
}

// withStage builds a Bobbin for one policy, and what is to be replayed in it, for the time of
// use.
func (v *evaluator) withStage(ctx context.Context, i int, use func(st *stage, r Replayed) error) (err error) {
	player := NewPlayer(v.info, v.count)
	spent := func() Expense { return Expense{} }
	settings := stageSettings{cfg: v.cfg, logger: v.log, counter: v.count, agent: v.agents[i], tools: v.tools, player: player, database: v.Database}
	if v.sums != nil {
		metered := Meter(v.sums, v.count)
		settings.summarizer, spent = metered, metered.Spent
	}
	st, err := openStage(ctx, settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	return use(st, Replayed{
		Policy: v.Policies[i], Conversation: v.talk, Facts: v.facts, Bobbin: st, Player: player,
		Summarizer: v.Summarizer, Spent: spent, Progress: func(turns int) { v.reportProgress(i, turns) },
	})
}

// reportProgress tells how far all replays are together.
func (v *evaluator) reportProgress(policy, turns int) {
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
