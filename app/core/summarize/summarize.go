package summarize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/prompttext"
	"bobbin/app/core/redact"
)

// The names of the strategies, as policies and stored summaries say them.
const (
	StrategyLLM        = "llm"
	StrategyHybrid     = "hybrid"
	StrategyExtractive = "extractive"
	StrategyNative     = "native" // the provider's own compaction, beside a summary of StrategyHybrid
	StrategySteps      = "steps"  // of a tool loop, without a model
)

// The presets that have a prompt. Compaction is for the older part of a run's tool loop.
const (
	PresetWindow     = "window"
	PresetBudget     = "budget"
	PresetSliding    = "sliding"
	PresetRatio      = "ratio"
	PresetCompaction = "compaction"
)

// MinLimit is the smallest limit at which every summary is a complete statement.
// Below it the result is still within its limit, but may be a fragment.
const MinLimit = prompttext.MinTokens

// ErrNoGain means that no summary can be smaller than what it would replace:
// there is too little to summarize. Nothing may be stored.
var ErrNoGain = errors.New("a summary would not be smaller than what it replaces")

// ErrFailed means that the strategy failed and Request.Strict allows no fallback.
// The Note and the Cause of the Result say why. Nothing may be stored.
var ErrFailed = errors.New("the summary failed")

// Request describes the summary to write. Token counts are cl100k_base.
type Request struct {
	Preset   string         // whose prompt is used; empty or unknown = window
	Previous string         // the summary to extend; empty = none
	Messages []core.Message // to add, in order, tool calls and results included; system rows are skipped
	// Load returns messages that have no text yet (core.Message.Unloaded) with their
	// text; a deleted message as it is. Nil = all messages have their text.
	Load         func(ctx context.Context, list []core.Message) ([]core.Message, error)
	Limit        int    // max tokens of the result; at least 1
	TargetTokens int    // tokens that the prompt asks for; 0 or over Limit = Limit
	Replaces     int    // tokens of Previous and Messages as counted in the prompt; 0 = counted here
	Window       int    // of the model that writes; 0 = llm.Info.Window
	Focus        string // what the user asked to keep above all; empty = nothing
	Speakers     bool   // several users speak: messages begin with their names (core.Message.Named)
	// Instructions are what users set for the whole conversation, also what was changed or
	// withdrawn since. Prompts list what stands of it beside the summary, so code quotes none of it.
	// A model may. Nil = quote all.
	Instructions []core.StandingInstruction
	// TimeLimit bounds all model calls together; after it the summary is written
	// without a model. 0 = only ctx bounds them.
	TimeLimit time.Duration
	Strict    bool // a strategy that fails has no fallback
}

// Result is a finished summary.
type Result struct {
	Content  string
	Tokens   int    // of Content
	Strategy string // the strategy that wrote Content; after a fallback the one without a model
	Model    string // empty = written without a model
	Note     string // why it is not what was requested, such as "fallback: …"; empty = it is
	// Cause is the reason for Note in one of a few words: time_limit, strategy, model_
	// and an llm.ErrorKind, or why the answer was refused (empty, reasoning_only,
	// cut_off, tool_call, not_smaller, markup, dialog, echo, repetition, too_short,
	// ungrounded, forgotten, refused). Empty without a Note.
	Cause string
	// Shortened is how many messages the strategy saw only in part, because they were
	// too long for its call. Tool results, which are always shown in part, count only if
	// they were cut further.
	Shortened int
	// Calls are the model calls, refused and failed ones too. Purpose, Model,
	// Provider, Estimated, Usage, FinishReason, Error, Duration and CreatedAt are
	// set; the caller sets ids and owner.
	Calls []core.ModelCall
}

// Strategy writes summaries. Implementations are safe for concurrent use.
type Strategy interface {
	// Summarize returns a summary of at most req.Limit tokens. With an error only
	// the Calls of the Result are valid. It returns soon after ctx is done.
	Summarize(ctx context.Context, req Request) (Result, error)
}

// Summarizer writes summaries that may be stored. Safe for concurrent use.
type Summarizer struct {
	strategy Strategy
	count    core.TextCounter
}

// New returns a Summarizer that uses the strategy. The fallback is NewExtractive, of PresetCompaction NewSteps.
func New(strategy Strategy, count core.TextCounter) *Summarizer { return &Summarizer{strategy, count} }

// Summarize returns a summary of at most req.Limit tokens that is strictly
// smaller than what it replaces. If the strategy fails, is refused or takes too long, the
// fallback without a model writes it, unless the request is strict; Note and Strategy say
// so. Errors: the cause of ctx when it is done, ErrNoGain, ErrFailed,
// ErrInvalid for a request without messages or limit, and errors of Load. With an error the
// Result holds only the Calls and, with ErrFailed, Note and Cause.
func (s *Summarizer) Summarize(ctx context.Context, req Request) (Result, error) {
	if len(req.Messages) == 0 || req.Limit < 1 {
		return Result{}, core.Errorf(core.ErrInvalid, "a summary needs messages and a limit")
	}
	if req.Replaces <= 0 {
		req.Replaces = s.count.Text(req.Previous)
		for _, m := range req.Messages {
			req.Replaces += cmp.Or(m.TokenCount, s.count.Text(m.Content))
		}
	}
	req, reduced, err := prepareMaterial(ctx, req)
	if err != nil {
		return Result{}, err
	}
	res, err := s.runWithTimeLimit(ctx, req)
	if ctx.Err() != nil {
		return Result{Calls: res.Calls}, fmt.Errorf("summarize: %w", context.Cause(ctx))
	}
	if err == nil {
		res, err = s.checkResult(res, req)
	}
	if err == nil {
		res.Shortened = max(res.Shortened, reduced)
		return res, nil
	}
	if req.Strict {
		why := rejectionOf(err)
		return Result{Calls: res.Calls, Note: why.reason, Cause: why.cause}, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	// Rung 5: without a model.
	fallback := NewExtractive(s.count)
	if req.Preset == PresetCompaction {
		fallback = NewSteps(s.count)
	}
	why, calls := rejectionOf(err), res.Calls
	if res, err = fallback.Summarize(ctx, req); err != nil {
		return Result{Calls: calls}, err
	}
	if res, err = s.checkResult(res, req); err != nil {
		return Result{Calls: calls}, fmt.Errorf("summarize: %w", ErrNoGain)
	}
	res.Calls, res.Note, res.Cause = calls, "fallback: "+why.reason, why.cause
	return res, nil
}

// runWithTimeLimit runs the strategy under the request's time limit.
func (s *Summarizer) runWithTimeLimit(ctx context.Context, req Request) (Result, error) {
	if req.TimeLimit <= 0 {
		return s.strategy.Summarize(ctx, req)
	}
	limited, cancel := context.WithTimeoutCause(ctx, req.TimeLimit, errTimeLimit)
	defer cancel()
	res, err := s.strategy.Summarize(limited, req)
	if err != nil && errors.Is(context.Cause(limited), errTimeLimit) {
		return res, rejection{errTimeLimit.cause, fmt.Sprintf("%s (%s)", errTimeLimit.reason, req.TimeLimit)}
	}
	return res, err
}

// checkResult is the last gate for every strategy: the text is valid for every database,
// has no secrets, is within the limit, and smaller than what it replaces.
func (s *Summarizer) checkResult(res Result, req Request) (Result, error) {
	res.Content = prompttext.Oldest(s.count, prompttext.Harmless(redact.Text(core.CleanText(res.Content))), req.Limit)
	res.Tokens = s.count.Text(res.Content)
	if res.Content == "" {
		return res, errEmpty
	}
	if res.Tokens >= req.Replaces {
		return res, errNotSmaller
	}
	return res, nil
}

// Kind is a strategy that an agent's file can name (context.strategy).
type Kind struct {
	Name  string
	Model bool // it calls a model: without one Extractive replaces it
	New   func(Material) Strategy
	// Native: beside the summary of New, the provider of the conversation's model writes its own
	// (core.NativeSummary).
	Native bool
}

// Material is what a strategy is built from.
type Material struct {
	Count core.TextCounter
	// Model writes summaries, and Factor returns how many of its tokens one of ours
	// currently is; nil for kinds without a model. See NewLLM.
	Model  llm.Model
	Factor func() float64
}

// Kinds is the table of strategies: the only place where a strategy is registered.
func Kinds() []Kind {
	write := func(m Material) *LLM { return NewLLM(m.Model, m.Count, m.Factor) }
	return []Kind{
		{Name: StrategyLLM, Model: true, New: func(m Material) Strategy { return write(m) }},
		{Name: StrategyHybrid, Model: true, New: func(m Material) Strategy { return NewHybrid(write(m)) }},
		{Name: StrategyNative, Model: true, Native: true, New: func(m Material) Strategy { return NewHybrid(write(m)) }},
		{Name: StrategyExtractive, New: func(m Material) Strategy { return NewExtractive(m.Count) }},
	}
}

// KindOf returns the named strategy; the zero Kind = there is none.
func KindOf(name string) Kind {
	for _, k := range Kinds() {
		if k.Name == name {
			return k
		}
	}
	return Kind{}
}
