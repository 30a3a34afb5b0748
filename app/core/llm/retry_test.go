package llm_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
)

func ask(text string) llm.Request {
	return llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: text}}}
}

// silent logs nothing.
var silent = slog.New(slog.DiscardHandler)

func failure(kind llm.ErrorKind) *llm.Error {
	return &llm.Error{Kind: kind, Message: "no", Provider: "test"}
}

func TestRetryRepeatsWhatMayPass(t *testing.T) {
	t.Parallel()
	kinds := map[llm.ErrorKind]bool{
		llm.KindRateLimit: true, llm.KindOverloaded: true, llm.KindNetwork: true, llm.KindTimeout: true, llm.KindTruncated: true,
		llm.KindContextLength: false, llm.KindAuth: false, llm.KindCanceled: false, llm.KindInvalid: false,
		llm.KindNotFound: false, llm.KindContentFilter: false, llm.KindUnknown: false, llm.KindCompactionRefused: false, llm.KindToolChangesRefused: false,
	}
	for kind, want := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				script := llmtest.Scripted(failure(kind), "hello")
				got, err := llm.Collect(llm.WithRetry(script, silent).Stream(t.Context(), ask("x")), nil)
				repeated := err == nil && got.Text == "hello"
				compare.True(t, repeated == want, "got %q, %v, want repeated = %v", got.Text, err, want)
				compare.True(t, want || llm.IsKind(err, kind), "got %v, want the error itself", err)
			})
		})
	}
}

// A call is repeated three times, after waits that grow and are random by half, or as long as the provider wants;
// not once a delta came, and not where the wait is too long.
func TestRetryWaits(t *testing.T) {
	t.Parallel()
	told := func(after time.Duration) *llm.Error {
		return &llm.Error{Kind: llm.KindRateLimit, Message: "no", Provider: "test", RetryAfter: after}
	}
	cause := errors.New("stop pressed")
	for name, c := range map[string]struct {
		steps       []any
		deadline    time.Duration // of the call; 0 = none
		cancel      time.Duration // after which it is canceled; 0 = not
		least, most time.Duration // that it takes
		requests    int
		text        string
		kind        llm.ErrorKind
	}{
		"given up after three":       {steps: []any{llmtest.Step{Err: failure(llm.KindOverloaded), Repeat: true}}, least: 1750 * time.Millisecond, most: 3500 * time.Millisecond, requests: 4, kind: llm.KindOverloaded},
		"after the first delta":      {steps: []any{llmtest.Step{Text: []string{"par"}, Err: failure(llm.KindTruncated)}, "hello"}, requests: 1, text: "par", kind: llm.KindTruncated},
		"a Retry-After":              {steps: []any{told(20 * time.Second), "hello"}, least: 20 * time.Second, most: 22 * time.Second, requests: 2, text: "hello"},
		"a Retry-After over a limit": {steps: []any{told(61 * time.Second), "hello"}, requests: 1, kind: llm.KindRateLimit},
		"past the deadline":          {steps: []any{told(30 * time.Second), "hello"}, deadline: 10 * time.Second, requests: 1, kind: llm.KindRateLimit},
		"canceled while it waits":    {steps: []any{failure(llm.KindOverloaded), "hello"}, cancel: 100 * time.Millisecond, least: 100 * time.Millisecond, most: 100 * time.Millisecond, requests: 1, kind: llm.KindCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.deadline > 0 {
					limited, stop := context.WithTimeout(ctx, c.deadline)
					defer stop()
					ctx = limited
				}
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, func() { cancel(cause) })
				}
				script := llmtest.Scripted(c.steps...)
				start := time.Now()
				got, err := llm.Collect(llm.WithRetry(script, silent).Stream(ctx, ask("x")), nil)
				if took := time.Since(start); took < c.least || took > c.most || len(script.Requests()) != c.requests {
					t.Errorf("took %v and %d requests, want %v to %v and %d", took, len(script.Requests()), c.least, c.most, c.requests)
				}
				compare.True(t, got.Text == c.text && ((err == nil && c.kind == "") || llm.IsKind(err, c.kind)) && errors.Is(err, cause) == (c.cancel > 0), "got %q, %v, want %q and %q", got.Text, err, c.text, c.kind)
			})
		})
	}
}

// timed is a model whose answer takes a second, and how many it wrote at once.
type timed struct {
	mu            sync.Mutex
	calls, atOnce int
}

// Info describes the model.
func (*timed) Info() llm.Info { return llm.Info{Name: "timed", Provider: "openai"} }

// Stream answers after a second.
func (m *timed) Stream(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		m.addCalls(1)
		defer m.addCalls(-1)
		<-time.After(time.Second)
		if yield(llm.Delta{Text: "yes"}, nil) {
			yield(llm.Delta{Finish: core.FinishStop}, nil)
		}
	}
}

func (m *timed) addCalls(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls += n
	m.atOnce = max(m.atOnce, m.calls)
}

// Configured slots bound the concurrent calls to a server, wherever it is, for all its models
// together; without them nothing waits.
func TestSlotsBoundCalls(t *testing.T) {
	t.Parallel()
	const local, remote = "http://127.0.0.1:8080/v1", "https://box/v1"
	for name, tt := range map[string]struct {
		provider, url string
		slots, other  int // of two models at the server
		want          int // of eight calls at once
	}{
		"on this machine":         {"openai", local, 0, 0, 8},
		"Ollama":                  {"ollama", "http://box:11434/v1", 0, 0, 8},
		"one":                     {"openai", local, 1, 0, 1},
		"three elsewhere":         {"openai", remote, 3, 0, 3},
		"the largest number":      {"openai", remote, 2, 5, 5},
		"of the other model only": {"openai", remote, 0, 2, 2},
		"more than are counted":   {"openai", remote, 1 << 40, 0, 8},
	} {
		synctest.Test(t, func(t *testing.T) {
			var servers llm.Servers
			server := new(timed)
			a := llm.WithRetry(servers.Share(server, llm.Entry{Info: llm.Info{Provider: tt.provider}, BaseURL: tt.url, Slots: tt.slots}), silent)
			b := servers.Share(server, llm.Entry{Info: llm.Info{Provider: tt.provider}, BaseURL: tt.url, Slots: tt.other})
			var wait sync.WaitGroup
			for i := range 8 {
				wait.Go(func() {
					compare.Error(t, name, nil, compare.ErrorOf(llm.Collect([]llm.Model{a, b}[i%2].Stream(t.Context(), llm.Request{}), nil)))
				})
			}
			begun := time.Now()
			wait.Wait()
			took := time.Since(begun)
			compare.Equal(t, name+": calls at once, time of all", []any{tt.want, time.Duration((7+tt.want)/tt.want) * time.Second}, []any{server.atOnce, took})
		})
	}
}

// A call that waits for a slot ends with its context, and leaves the slot to the others.
func TestWaitForSlotEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var servers llm.Servers
		m := servers.Share(new(timed), llm.Entry{Info: llm.Info{Provider: "openai"}, Slots: 1})
		done := make(chan struct{})
		go func() {
			_, _ = llm.Collect(m.Stream(t.Context(), llm.Request{}), nil)
			close(done)
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var told []llm.Delta
		_, err := llm.Collect(m.Stream(ctx, llm.Request{}), func(d llm.Delta) { told = append(told, d) })
		compare.True(t, len(told) == 1 && told[0].Queued, "got %v, want that it waits", told)
		compare.True(t, llm.IsKind(err, llm.KindCanceled) && errors.Is(err, context.DeadlineExceeded), "got %v, want the call canceled", err)
		<-done
		compare.Error(t, "the slot is lost", nil, compare.ErrorOf(llm.Collect(m.Stream(t.Context(), llm.Request{}), nil)))
	})
}

// A call that fails behind its wait for a slot is repeated like others; the end of the wait is told.
func TestRetryBehindTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var servers llm.Servers
		scripted := llmtest.Scripted(failure(llm.KindOverloaded), "hello")
		entry := llm.Entry{Info: llm.Info{Provider: "openai"}, Slots: 1}
		other, m := servers.Share(new(timed), entry), llm.WithRetry(servers.Share(scripted, entry), silent)
		go func() { _, _ = llm.Collect(other.Stream(t.Context(), llm.Request{}), nil) }()
		synctest.Wait()
		var queued []bool
		got, err := llm.Collect(m.Stream(t.Context(), llm.Request{}), func(d llm.Delta) { queued = append(queued, d.Queued) })
		compare.True(t, err == nil && got.Text == "hello" && len(queued) > 2 && queued[0] && !queued[1], "got %q, %v, queued %v", got.Text, err, queued)
	})
}
