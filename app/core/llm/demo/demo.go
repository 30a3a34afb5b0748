package demo

import (
	"context"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
)

const (
	// Window is the demonstration's context window in tokens: small, so that
	// people can see context management at work.
	Window = 8_192
	// MaxOutput is the longest answer in tokens.
	MaxOutput = 2_048
	// DefaultDelay is how long each word takes.
	DefaultDelay = 8 * time.Millisecond
)

// name is what the model and its provider are called.
const name = "demo"

// Model answers by rules. Safe for concurrent use.
type Model struct {
	delay time.Duration
	count func(string) int
}

// Option changes how the model answers.
type Option func(*Model)

// WithDelay sets how long each word takes; 0 = the answer comes at once.
func WithDelay(d time.Duration) Option { return func(m *Model) { m.delay = d } }

// WithCounter sets how tokens are counted, for the usage and for limits. Without
// it they are estimated at four letters each.
func WithCounter(count func(string) int) Option { return func(m *Model) { m.count = count } }

// New returns the demonstration.
func New(options ...Option) *Model {
	m := &Model{delay: DefaultDelay, count: estimate}
	for _, o := range options {
		o(m)
	}
	return m
}

// estimate counts four bytes of ASCII as a token, and each other character as one.
func estimate(text string) int {
	runes := utf8.RuneCountInString(text)
	other := 0
	for _, r := range text {
		if r >= utf8.RuneSelf {
			other++
		}
	}
	return (runes-other+3)/4 + other
}

// Info describes the model.
func (m *Model) Info() llm.Info {
	return llm.Info{Name: name, Provider: name, Window: Window, MaxOutput: MaxOutput, PriorFactor: 1}
}

// Stream answers word by word. It fails only when ctx is done, with KindCanceled.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if ctx.Err() != nil {
			yield(llm.Delta{}, llm.CanceledError(ctx, name))
			return
		}
		s := speaker{ctx: ctx, delay: m.delay, yield: yield}
		r := m.answer(req)
		text, cut := m.limit(r.text, req.MaxOutputTokens)
		if !s.say(text) || !s.call(r.calls) {
			return
		}
		usage := m.usage(req, text, r.calls)
		yield(llm.Delta{Usage: &usage, Finish: finish(r, cut)}, nil)
	}
}

// reply is what a rule answers.
type reply struct {
	text  string
	calls []core.ToolCall
}

func (m *Model) answer(req llm.Request) reply {
	if isSummarizer(req) {
		return reply{text: m.summarize(req)}
	}
	if isTitler(req) {
		return reply{text: title(req)}
	}
	return converse(newTalk(req))
}

func finish(r reply, cut bool) core.FinishReason {
	switch {
	case cut:
		return core.FinishLength
	case len(r.calls) > 0:
		return core.FinishToolCalls
	default:
		return core.FinishStop
	}
}

// limit cuts the text to the wanted number of tokens, and reports whether it had
// to.
func (m *Model) limit(text string, tokens int) (string, bool) {
	if tokens <= 0 || tokens > MaxOutput {
		tokens = MaxOutput
	}
	if m.count(text) <= tokens {
		return text, false
	}
	kept, used := 0, 0
	for _, word := range words(text) {
		used += max(m.count(word), 1)
		if used > tokens {
			break
		}
		kept += len(word)
	}
	return text[:kept], true
}

// usage counts what went in and out, by the rules of package tokens.
func (m *Model) usage(req llm.Request, text string, calls []core.ToolCall) core.Usage {
	in := tokens.ListOverhead
	if len(req.System) > 0 {
		in += tokens.MessageOverhead + m.count(strings.Join(req.System, "\n\n"))
	}
	for _, msg := range req.Messages {
		in += tokens.Prompted(m.count, msg)
	}
	for _, t := range req.Tools {
		in += tokens.ToolOverhead + m.count(t.Name) + m.count(t.Description) + m.count(string(t.Parameters))
	}
	return core.Usage{InputTokens: in, OutputTokens: m.count(text) + m.countCalls(calls)}
}

func (m *Model) countCalls(calls []core.ToolCall) int {
	n := 0
	for _, c := range calls {
		n += m.count(c.Name) + m.count(c.Arguments)
	}
	return n
}
