// Package llmtest has a model for tests that answers as scripted.
package llmtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/must"
)

// Step is one scripted answer. It yields Reasoning, its Parts, then each string
// of Text, then the tool calls, then Usage and the finish reason; or it ends with Err.
type Step struct {
	Text       []string // one delta each
	Reasoning  string
	Parts      []core.Part     // blocks of reasoning that go back, after Reasoning
	Compaction *core.Part      // after Parts
	ToolCalls  []core.ToolCall // several = parallel calls
	InBytes    bool            // the arguments of the calls come byte by byte
	Usage      *core.Usage     // nil = the provider does not report it
	Finish     core.FinishReason
	Model      string // that answers; empty = the provider does not report it
	// Err ends the answer after its deltas. An *llm.Error is yielded unchanged, anything
	// else as an *llm.Error of KindUnknown.
	Err error
	// Gate, if not nil, holds the answer after GateAfter deltas (0 = before
	// the first, many = before the end) until it is opened or ctx is done.
	Gate      *Gate
	GateAfter int
	// From computes the step from the request; the other fields are not used.
	From func(llm.Request) Step
	// Repeat keeps the step as the answer to all later requests too.
	Repeat bool
}

// Say returns a step that answers with the text, split into the given deltas.
func Say(deltas ...string) Step { return Step{Text: deltas} }

// Call returns a step that calls tools in parallel.
func Call(calls ...core.ToolCall) Step { return Step{ToolCalls: calls} }

// Fail returns a step that fails before its first delta.
func Fail(err error) Step { return Step{Err: err} }

// Gate holds a scripted answer open. It serves one answer.
type Gate struct {
	reached chan struct{}
	opened  chan struct{}
	reach   sync.Once
	open    sync.Once
}

// NewGate returns a closed gate.
func NewGate() *Gate {
	return &Gate{reached: make(chan struct{}), opened: make(chan struct{})}
}

// Reached is closed when the answer waits at the gate.
func (g *Gate) Reached() <-chan struct{} { return g.reached }

// Open releases the answer. It may be called more than once, and early.
func (g *Gate) Open() { g.open.Do(func() { close(g.opened) }) }

// wait reports whether the gate was opened before ctx was done.
func (g *Gate) wait(ctx context.Context) bool {
	g.reach.Do(func() { close(g.reached) })
	select {
	case <-g.opened:
		return true
	case <-ctx.Done():
		return false
	}
}

// Script is an llm.Model for tests that answers as scripted and keeps every request.
type Script struct {
	mu       sync.Mutex
	info     llm.Info      // guarded by mu
	steps    []Step        // guarded by mu; the remaining answers
	given    int           // guarded by mu; how many steps there were
	requests []llm.Request // guarded by mu
}

// Scripted returns a model that gives the answers one after the other: a string
// says it, an error fails with it, a Step does what it says, and a
// func(llm.Request) Step is asked. It panics on anything else. A request after the
// last answer fails with KindInvalid. Safe for concurrent use.
func Scripted(answers ...any) *Script {
	s := &Script{info: llm.Info{Name: "scripted", Provider: "scripted", Window: 128_000, MaxOutput: 4_096}}
	s.Add(answers...)
	return s
}

// Add appends answers, as Scripted takes them.
func (s *Script) Add(answers ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range answers {
		s.steps = append(s.steps, toStep(a))
	}
	s.given += len(answers)
}

func toStep(answer any) Step {
	switch a := answer.(type) {
	case string:
		return Say(a)
	case Step:
		return a
	case func(llm.Request) Step:
		return Step{From: a}
	case error:
		return Fail(a)
	default:
		panic(fmt.Sprintf("llmtest.Scripted: an answer is a string, a Step, an error or a func(llm.Request) Step, not a %T", answer))
	}
}

// WithInfo sets what Info returns, and returns s.
func (s *Script) WithInfo(info llm.Info) *Script {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info = info
	return s
}

// Info describes the model: "scripted", window 128,000, unless WithInfo said
// something else.
func (s *Script) Info() llm.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

// Requests returns all requests so far, in the order in which they came.
func (s *Script) Requests() []llm.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Remaining returns how many answers are left.
func (s *Script) Remaining() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.steps)
}

// Stream gives the next answer. The answer is taken, and the request recorded,
// when the stream is read.
func (s *Script) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		step, err := s.nextStep(req)
		if err != nil {
			yield(llm.Delta{}, err)
			return
		}
		if step.From != nil {
			step = step.From(req)
		}
		if err := s.playStep(ctx, step, yield); err != nil {
			yield(llm.Delta{}, err)
		}
	}
}

// nextStep records the request and returns the step that answers it.
func (s *Script) nextStep(req llm.Request) (Step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.System, req.Messages, req.Tools = slices.Clone(req.System), slices.Clone(req.Messages), slices.Clone(req.Tools)
	s.requests = append(s.requests, req)
	if len(s.steps) == 0 {
		last := "nothing"
		if n := len(req.Messages); n > 0 {
			last = fmt.Sprintf("%s %q", req.Messages[n-1].Role, req.Messages[n-1].Content)
		}
		return Step{}, &llm.Error{Kind: llm.KindInvalid, Provider: s.info.Provider,
			Message: fmt.Sprintf("request %d, but the script has %d answers; the last message is %s", len(s.requests), s.given, last)}
	}
	step := s.steps[0]
	if !step.Repeat {
		s.steps = s.steps[1:]
	}
	return step, nil
}

// playStep yields the step. It returns the error that ends it; nil also when the
// caller left.
func (s *Script) playStep(ctx context.Context, step Step, yield func(llm.Delta, error) bool) error {
	provider := s.Info().Provider
	deltas := step.leadingDeltas()
	for i := range len(deltas) + 1 {
		if step.Gate != nil && i == min(step.GateAfter, len(deltas)) && !step.Gate.wait(ctx) {
			return llm.CanceledError(ctx, provider)
		}
		if ctx.Err() != nil {
			return llm.CanceledError(ctx, provider)
		}
		if i < len(deltas) && !yield(deltas[i], nil) {
			return nil
		}
	}
	if step.Err != nil {
		return step.typedError(provider)
	}
	yield(llm.Delta{Usage: step.Usage, Finish: step.finishReason(), Model: step.Model}, nil)
	return nil
}

// leadingDeltas returns the deltas before the last.
func (s Step) leadingDeltas() []llm.Delta {
	var out []llm.Delta
	if s.Reasoning != "" {
		out = append(out, llm.Delta{Reasoning: s.Reasoning})
	}
	for _, p := range s.Parts {
		out = append(out, llm.Delta{Part: &p})
	}
	if s.Compaction != nil {
		out = append(out, llm.Delta{Compaction: s.Compaction})
	}
	for _, text := range s.Text {
		out = append(out, llm.Delta{Text: text})
	}
	for i, c := range s.ToolCalls {
		first := &llm.ToolCallDelta{Index: i, ID: c.ID, Name: c.Name, Arguments: c.Arguments, Signature: c.Signature}
		out = append(out, llm.Delta{ToolCall: first})
		if s.InBytes {
			first.Arguments = ""
			for _, b := range []byte(c.Arguments) {
				out = append(out, llm.Delta{ToolCall: &llm.ToolCallDelta{Index: i, Arguments: string(b)}})
			}
		}
	}
	return out
}

func (s Step) finishReason() core.FinishReason {
	switch {
	case s.Finish != "":
		return s.Finish
	case len(s.ToolCalls) > 0:
		return core.FinishToolCalls
	default:
		return core.FinishStop
	}
}

func (s Step) typedError(provider string) error {
	if e := llm.AsError(s.Err); e != nil {
		return e
	}
	return &llm.Error{Kind: llm.KindUnknown, Provider: provider, Message: s.Err.Error(), Err: s.Err}
}

// Transport is a function as a transport.
type Transport func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f Transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// FuzzStream checks an adapter: whatever the provider streams, the answer ends with a typed error or
// with a finish reason; calls have different ids; and how the bytes were cut into packets changes nothing.
func FuzzStream(f *testing.F, open func(http.RoundTripper) (llm.Model, error)) {
	f.Helper()
	f.Fuzz(func(t *testing.T, body []byte) {
		read := func(r io.Reader) (llm.Response, error) {
			m, err := open(Transport(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(r)}, nil
			}))
			must.Do(t, err)
			return Collect(t, m, Ask("hi"))
		}
		whole, err := read(bytes.NewReader(body))
		must.True(t, err == nil || llm.AsError(err) != nil, "got %v, want an *llm.Error", err)
		must.True(t, (err == nil) == (whole.Finish != ""), "got finish %q with %v, want exactly one of both", whole.Finish, err)
		ids := map[string]bool{}
		for i, c := range whole.ToolCalls {
			if c.ID == "" && err == nil || c.ID != "" && ids[c.ID] { // a missing one may come last
				t.Fatalf("call %d has the id %q, want one of its own", i, c.ID)
			}
			ids[c.ID] = true
		}
		slow, slowErr := read(iotest.OneByteReader(bytes.NewReader(body)))
		must.True(t, (err == nil) == (slowErr == nil) && (err == nil || llm.AsError(slowErr).Kind == llm.AsError(err).Kind), "got %v, and byte by byte %v", err, slowErr)
		if diff := cmp.Diff(whole, slow, cmpopts.IgnoreFields(core.ToolCall{}, "ID")); diff != "" { // ours are random
			t.Fatalf("byte by byte is different (-whole +slow):\n%s", diff)
		}
	})
}
