package summarize

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/cut"
)

// The names of the strategies, as policies and stored summaries say them.
const (
	StrategyLLM        = "llm"
	StrategyHybrid     = "hybrid"
	StrategyExtractive = "extractive"
	StrategySteps      = "steps" // of a tool loop, without a model
)

// The presets that own a prompt. Compaction is for the older part of a run's
// tool loop (REQUIREMENTS L4).
const (
	PresetWindow     = "window"
	PresetBudget     = "budget"
	PresetSliding    = "sliding"
	PresetRatio      = "ratio"
	PresetCompaction = "compaction"
)

// MinLimit is the smallest limit at which every summary says at least something.
// Under it the result is still within its limit, but may be a mere fragment.
const MinLimit = cut.Least

// ErrNoGain says that no summary can be smaller than what it would replace:
// there is too little to summarize. Nothing is to be stored.
var ErrNoGain = errors.New("a summary would not be smaller than what it replaces")

// ErrFailed says that the strategy failed and that Request.Strict wants nothing else.
// The Note and the Cause of the Result say why. Nothing is to be stored.
var ErrFailed = errors.New("the summary was not made")

// Request is one summary to be made. Token counts are cl100k_base.
type Request struct {
	Preset   string         // whose prompt is used; empty or unknown = window
	Previous string         // the summary so far, to be extended; empty = none
	Messages []core.Message // to be added, in order, tool calls and results included; system rows are passed over
	Limit    int            // most tokens of the result; at least 1
	AskFor   int            // tokens that the prompt asks for; 0 or over Limit = Limit
	Replaces int            // tokens of Previous and Messages as they are counted in the prompt; 0 = counted here
	Focus    string         // what the user asked to keep above all; empty = nothing
	// TimeLimit bounds all model calls together; after it the summary is made
	// without a model. 0 = only ctx bounds them.
	TimeLimit time.Duration
	Strict    bool // a strategy that fails is not replaced by one that needs no model
}

// Result is a finished summary.
type Result struct {
	Content  string
	Tokens   int    // of Content
	Strategy string // the one that made Content: the one without a model after a fallback
	Model    string // empty = made without a model
	Note     string // why it is not what was asked for, such as "fallback: …"; empty = it is
	// Cause is the reason of Note in one of a few words: time_limit, strategy, model_
	// and an llm.ErrorKind, or why the answer was refused (empty, reasoning_only,
	// cut_off, tool_call, error_text, small_talk, not_smaller, refused). Empty without
	// a Note.
	Cause string
	// Calls are the model calls, refused and failed ones too. Purpose, Model,
	// Provider, Estimated, Usage, FinishReason, Error, Duration and CreatedAt are
	// set; ids and owner are the caller's to fill in.
	Calls []core.ModelCall
}

// Strategy makes summaries. Implementations are safe for concurrent use.
type Strategy interface {
	// Name is what policies and stored summaries call the strategy.
	Name() string
	// Summarize returns a summary of at most req.Limit tokens. With an error only
	// the Calls of the Result mean anything. It returns soon after ctx is done.
	Summarize(ctx context.Context, req Request) (Result, error)
}

// counter counts cl100k_base tokens (tokens.Counter).
type counter interface {
	Text(s string) int
}

// Summarizer makes summaries that may be stored. Safe for concurrent use.
type Summarizer struct {
	strategy Strategy
	instead  Strategy // needs no model and does not fail
	count    counter
}

// New returns a Summarizer that uses the strategy, and Extractive when it fails.
func New(strategy Strategy, count counter) *Summarizer {
	return &Summarizer{strategy: strategy, instead: NewExtractive(count), count: count}
}

// NewLoop returns a Summarizer for the older part of a tool loop: it uses the
// strategy, and Steps when it fails.
func NewLoop(strategy Strategy, count counter) *Summarizer {
	return &Summarizer{strategy: strategy, instead: NewSteps(count), count: count}
}

// errTimeLimit is the cause of a context that ended by Request.TimeLimit.
var errTimeLimit = errors.New("time limit of the summary passed")

// Summarize returns a summary of at most req.Limit tokens that is strictly
// smaller than what it replaces. A strategy that fails, is refused or takes too
// long is replaced by the one that needs no model, unless the request is strict; Note
// and Strategy say so. Errors: the cause of ctx when it is done, ErrNoGain, ErrFailed,
// and ErrInvalid for a request without messages or limit. With an error the Result
// holds only the Calls and, with ErrFailed, Note and Cause.
func (s *Summarizer) Summarize(ctx context.Context, req Request) (Result, error) {
	if len(req.Messages) == 0 || req.Limit < 1 {
		return Result{}, core.Errorf(core.ErrInvalid, "a summary needs messages and a limit")
	}
	if req.Replaces <= 0 {
		req.Replaces = s.size(req)
	}
	req = redacted(req)
	res, err := s.within(ctx, req)
	if ctx.Err() != nil {
		return Result{Calls: res.Calls}, fmt.Errorf("summarize: %w", context.Cause(ctx))
	}
	if err == nil {
		res, err = s.check(res, req)
	}
	if err == nil {
		return res, nil
	}
	if req.Strict {
		return Result{Calls: res.Calls, Note: reason(err), Cause: causeOf(err)}, fmt.Errorf("%w: %s", ErrFailed, reason(err))
	}
	return s.fallback(ctx, req, res.Calls, err)
}

// within runs the strategy under the request's time limit.
func (s *Summarizer) within(ctx context.Context, req Request) (Result, error) {
	if req.TimeLimit <= 0 {
		return s.strategy.Summarize(ctx, req)
	}
	limited, cancel := context.WithTimeoutCause(ctx, req.TimeLimit, errTimeLimit)
	defer cancel()
	res, err := s.strategy.Summarize(limited, req)
	if err != nil && errors.Is(context.Cause(limited), errTimeLimit) {
		return res, fmt.Errorf("%w (%s)", errTimeLimit, req.TimeLimit)
	}
	return res, err
}

// check is the last gate, whatever the strategy: text that every database takes,
// without secrets, within the limit, and smaller than what it replaces.
func (s *Summarizer) check(res Result, req Request) (Result, error) {
	res.Content = cut.Oldest(s.count, clean(res.Content), req.Limit)
	res.Tokens = s.count.Text(res.Content)
	if res.Content == "" {
		return res, errEmpty
	}
	if res.Tokens >= req.Replaces {
		return res, errNotSmaller
	}
	return res, nil
}

// fallback makes the summary without a model (rung 5).
func (s *Summarizer) fallback(ctx context.Context, req Request, calls []core.ModelCall, cause error) (Result, error) {
	req.Limit = max(min(req.Limit, req.Replaces-1), 1)
	res, err := s.instead.Summarize(ctx, req)
	res.Calls = calls
	if err != nil {
		return Result{Calls: calls}, err
	}
	if res, err = s.check(res, req); err != nil {
		return Result{Calls: calls}, fmt.Errorf("summarize: %w", ErrNoGain)
	}
	res.Calls = calls
	res.Note, res.Cause = "fallback: "+reason(cause), causeOf(cause)
	return res, nil
}

// size counts what the summary replaces when the caller did not.
func (s *Summarizer) size(req Request) int {
	n := s.count.Text(req.Previous)
	for _, m := range req.Messages {
		if m.TokenCount > 0 {
			n += m.TokenCount
			continue
		}
		n += s.count.Text(m.Content)
		for _, c := range m.ToolCalls {
			n += s.count.Text(c.Arguments)
		}
	}
	return n
}
