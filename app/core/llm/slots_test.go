package llm_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

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
			a := llm.WithRetry(servers.Share(server, llm.Entry{Provider: tt.provider, BaseURL: tt.url, Slots: tt.slots}), llm.Backoff{})
			b := servers.Share(server, llm.Entry{Provider: tt.provider, BaseURL: tt.url, Slots: tt.other})
			var wait sync.WaitGroup
			for i := range 8 {
				wait.Go(func() {
					if _, err := llm.Collect([]llm.Model{a, b}[i%2].Stream(t.Context(), llm.Request{}), nil); err != nil {
						t.Errorf("%s: %v", name, err)
					}
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
		if _, err := llm.Collect(m.Stream(t.Context(), llm.Request{}), nil); err != nil {
			t.Errorf("the slot is lost: %v", err)
		}
	})
}
