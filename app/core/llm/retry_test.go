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
				if repeated := err == nil && got.Text == "hello"; repeated != want {
					t.Errorf("got %q, %v, want repeated = %v", got.Text, err, want)
				}
				if !want && !llm.IsKind(err, kind) {
					t.Errorf("got %v, want the error itself", err)
				}
			})
		})
	}
}

func TestRetryGivesUpAfterThree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		script := llmtest.Scripted(llmtest.Step{Err: failure(llm.KindOverloaded), Repeat: true})
		start := time.Now()
		_, err := llm.Collect(llm.WithRetry(script, silent).Stream(t.Context(), ask("x")), nil)
		if !llm.IsKind(err, llm.KindOverloaded) {
			t.Errorf("got %v, want the last error", err)
		}
		compare.Equal(t, "requests", 4, len(script.Requests()))
		// Waits of 0.5, 1 and 2 s, the half of each random.
		if took := time.Since(start); took < 1750*time.Millisecond || took > 3500*time.Millisecond {
			t.Errorf("took %v, want between 1.75 and 3.5 s", took)
		}
	})
}

func TestRetryNotAfterTheFirstDelta(t *testing.T) {
	t.Parallel()
	script := llmtest.Scripted(llmtest.Step{Text: []string{"par"}, Err: failure(llm.KindTruncated)}, "hello")
	got, err := llm.Collect(llm.WithRetry(script, silent).Stream(t.Context(), ask("x")), nil)
	if !llm.IsKind(err, llm.KindTruncated) || got.Text != "par" {
		t.Errorf("got %q, %v, want the partial answer and its error", got.Text, err)
	}
	compare.Equal(t, "requests", 1, len(script.Requests()))
}

func TestRetryHonorsRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := failure(llm.KindRateLimit)
		told.RetryAfter = 20 * time.Second
		start := time.Now()
		got, err := llm.Collect(llm.WithRetry(llmtest.Scripted(told, "hello"), silent).Stream(t.Context(), ask("x")), nil)
		if err != nil || got.Text != "hello" {
			t.Errorf("got %q, %v, want hello", got.Text, err)
		}
		if took := time.Since(start); took < 20*time.Second || took > 22*time.Second {
			t.Errorf("took %v, want 20 to 22 s", took)
		}
	})
}

func TestRetryAfterOverTheLimitIsReturnedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := failure(llm.KindRateLimit)
		told.RetryAfter = 61 * time.Second
		start := time.Now()
		_, err := llm.Collect(llm.WithRetry(llmtest.Scripted(told, "hello"), silent).Stream(t.Context(), ask("x")), nil)
		if llm.AsError(err) != told || time.Since(start) != 0 {
			t.Errorf("got %v after %v, want the error at once", err, time.Since(start))
		}
	})
}

func TestRetryCanceledWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("stop pressed")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
		script := llmtest.Scripted(failure(llm.KindOverloaded), "hello")
		start := time.Now()
		_, err := llm.Collect(llm.WithRetry(script, silent).Stream(ctx, ask("x")), nil)
		if !llm.IsKind(err, llm.KindCanceled) || !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want KindCanceled with its cause", err)
		}
		if took := time.Since(start); took != 100*time.Millisecond || len(script.Requests()) != 1 {
			t.Errorf("took %v and %d requests, want 100 ms and 1", took, len(script.Requests()))
		}
	})
}

func TestRetryDoesNotWaitPastTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := failure(llm.KindRateLimit)
		told.RetryAfter = 30 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		_, err := llm.Collect(llm.WithRetry(llmtest.Scripted(told, "hello"), silent).Stream(ctx, ask("x")), nil)
		if llm.AsError(err) != told || time.Since(start) != 0 {
			t.Errorf("got %v after %v, want the provider's error at once", err, time.Since(start))
		}
	})
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
			a := llm.WithRetry(servers.Share(server, llm.Entry{Provider: tt.provider, BaseURL: tt.url, Slots: tt.slots}), silent)
			b := servers.Share(server, llm.Entry{Provider: tt.provider, BaseURL: tt.url, Slots: tt.other})
			var wait sync.WaitGroup
			for i := range 8 {
				wait.Go(func() {
					compare.Error(t, name, nil, compare.ErrorOf(llm.Collect([]llm.Model{a, b}[i%2].Stream(t.Context(), llm.Request{}), nil)))
				})
			}
			begun := time.Now()
			wait.Wait()
			if took := time.Since(begun); server.atOnce != tt.want || took != time.Duration((7+tt.want)/tt.want)*time.Second {
				t.Errorf("%s: got %d calls at once, all in %s, want %d", name, server.atOnce, took, tt.want)
			}
		})
	}
}

// A call that waits for a slot ends with its context, and leaves the slot to the others.
func TestWaitForSlotEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var servers llm.Servers
		m := servers.Share(new(timed), llm.Entry{Provider: "openai", Slots: 1})
		done := make(chan struct{})
		go func() {
			_, _ = llm.Collect(m.Stream(t.Context(), llm.Request{}), nil)
			close(done)
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := llm.Collect(m.Stream(ctx, llm.Request{}), nil)
		if !llm.IsKind(err, llm.KindCanceled) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the call canceled", err)
		}
		<-done
		compare.Error(t, "the slot is lost", nil, compare.ErrorOf(llm.Collect(m.Stream(t.Context(), llm.Request{}), nil)))
	})
}
