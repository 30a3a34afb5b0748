package llm_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// local is where a server of this machine is.
const local = "http://127.0.0.1:8080/v1"

// timed is a model of a server with so many slots, for which requests queue. An answer
// takes as long as MaxOutputTokens says, in seconds.
type timed struct{ free chan struct{} }

func newTimed(slots int) *timed {
	m := &timed{free: make(chan struct{}, slots)}
	for range slots {
		m.free <- struct{}{}
	}
	return m
}

// Info describes the model.
func (*timed) Info() llm.Info { return llm.Info{Name: "timed", Provider: "openai"} }

// Stream answers when a slot is free.
func (m *timed) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		select {
		case <-m.free:
			defer func() { m.free <- struct{}{} }()
		case <-ctx.Done():
			yield(llm.Delta{}, llm.CanceledError(ctx, "openai"))
			return
		}
		select {
		case <-time.After(time.Duration(req.MaxOutputTokens) * time.Second):
		case <-ctx.Done():
			yield(llm.Delta{}, llm.CanceledError(ctx, "openai"))
			return
		}
		if yield(llm.Delta{Text: "yes"}, nil) {
			yield(llm.Delta{Finish: core.FinishStop}, nil)
		}
	}
}

// askTimed makes a call of so many seconds and returns how long it took.
func askTimed(t *testing.T, m llm.Model, seconds int, background bool) (time.Duration, error) {
	t.Helper()
	begun := time.Now()
	_, err := llm.Collect(m.Stream(t.Context(), llm.Request{MaxOutputTokens: seconds, Background: background}), nil)
	return time.Since(begun), err
}

// A background call gives its slot to a call that somebody waits for, and gets it again
// when the server has been idle for a moment. It is not told as a failure of the provider.
//
// Finding: context-F8
func TestBackgroundYields(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]llm.Entry{
		"on this machine": {Provider: "openai", BaseURL: local}, "localhost": {Provider: "openai", BaseURL: "http://localhost:1/v1"},
		"Ollama": {Provider: "ollama", BaseURL: "http://box:11434/v1"}, "configured": {Provider: "openai", BaseURL: "https://box/v1", Slots: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var servers llm.Servers
			m := llm.WithRetry(servers.Share(newTimed(1), e), llm.Backoff{})
			ended := make(chan error)
			go func() {
				_, err := askTimed(t, m, 25, true)
				ended <- err
			}()
			time.Sleep(10 * time.Second)
			if took, err := askTimed(t, m, 1, false); err != nil || took != time.Second {
				t.Errorf("%s: the run's call took %s, %v, want its own second", name, took, err)
			}
			if err := <-ended; !errors.Is(err, llm.ErrYielded) || llm.AsError(err) == nil || llm.AsError(err).Retryable() {
				t.Errorf("%s: the background call ended with %v, want ErrYielded", name, err)
			}
			if _, err := askTimed(t, m, 25, true); !errors.Is(err, llm.ErrYielded) || llm.Free(m) {
				t.Errorf("%s: a background call began in the moment after the run's, %v", name, err)
			}
			begun := time.Now()
			if err := llm.AwaitFree(t.Context(), m); err != nil || time.Since(begun) > 3*time.Second {
				t.Errorf("%s: waited %s, %v, want a moment", name, time.Since(begun), err)
			}
			if took, err := askTimed(t, m, 25, true); err != nil || took != 25*time.Second {
				t.Errorf("%s: the second try took %s, %v", name, took, err)
			}
		})
	}
}

// Where there are slots enough, or nothing is known, nobody yields; calls of runs wait for
// each other as the server lets them.
func TestEnoughSlots(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		entry   llm.Entry
		slots   int
		contend bool
	}{
		"not known":  {llm.Entry{Provider: "openai", BaseURL: "https://cloud/v1"}, 9, false},
		"configured": {llm.Entry{Provider: "openai", BaseURL: local, Slots: 3}, 3, false},
		"one":        {llm.Entry{Provider: "openai", BaseURL: local}, 1, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var servers llm.Servers
			shared := newTimed(tt.slots)
			a, b := servers.Share(shared, tt.entry), servers.Share(shared, tt.entry)
			other := servers.Share(shared, llm.Entry{Provider: "openai", BaseURL: "http://127.0.0.1:9/v1"})
			if llm.Contend(a, b) != tt.contend || llm.Contend(a, other) || llm.Contend(shared, shared) {
				t.Errorf("%s: contend %t, want %t, and never with another server", name, llm.Contend(a, b), tt.contend)
			}
			if tt.contend {
				return
			}
			ended := make(chan error)
			go func() {
				_, err := askTimed(t, a, 25, true)
				ended <- err
			}()
			time.Sleep(time.Second)
			if took, err := askTimed(t, b, 1, false); err != nil || took != time.Second {
				t.Errorf("%s: the run's call took %s, %v", name, took, err)
			}
			if err := <-ended; err != nil {
				t.Errorf("%s: the background call ended with %v", name, err)
			}
		})
	}
}

// Slots are learned: from answers that come at once, from calls that wait for others, and
// from refusals beside others. What was learned is forgotten after a while.
func TestSlotsAreLearned(t *testing.T) {
	t.Parallel()
	t.Run("several at once", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var servers llm.Servers
			m := servers.Share(speaking{newTimed(4)}, llm.Entry{Provider: "openai", BaseURL: local})
			done := make(chan struct{})
			go func() {
				_, _ = askTimed(t, m, 5, false)
				close(done)
			}()
			time.Sleep(time.Second)
			_, _ = askTimed(t, m, 1, false)
			<-done
			if llm.Contend(m, m) {
				t.Error("two answers at once, and still taken to have one slot")
			}
		})
	})
	t.Run("waiting", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var servers llm.Servers
			m := servers.Share(newTimed(1), llm.Entry{Provider: "openai", BaseURL: "https://box/v1"})
			for i := range 3 {
				if llm.Contend(m, m) != (i == 2) {
					t.Errorf("after %d waits: one slot %t", i, llm.Contend(m, m))
				}
				done := make(chan struct{})
				go func() {
					_, _ = askTimed(t, m, 25, true)
					close(done)
				}()
				time.Sleep(time.Second)
				_, _ = askTimed(t, m, 1, false)
				<-done
				time.Sleep(5 * time.Second)
			}
			time.Sleep(time.Hour)
			if llm.Contend(m, m) {
				t.Error("what was learned is believed for ever")
			}
		})
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var servers llm.Servers
			gate := llm.NewGate()
			m := servers.Share(llm.Scripted(llm.Step{Gate: gate}, &llm.Error{Kind: llm.KindRateLimit, Status: 429}), llm.Entry{Provider: "openai", BaseURL: "https://box/v1"})
			done := make(chan struct{})
			go func() {
				_, _ = askTimed(t, m, 1, false)
				close(done)
			}()
			<-gate.Reached()
			_, _ = askTimed(t, m, 1, false)
			if !llm.Contend(m, m) {
				t.Error("a call was refused beside another, and nothing was learned")
			}
			gate.Open()
			<-done
		})
	})
}

// speaking is a model whose first word comes at once.
type speaking struct{ *timed }

// Stream says something before it answers.
func (m speaking) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if !yield(llm.Delta{Text: "well, "}, nil) {
			return
		}
		m.timed.Stream(ctx, req)(yield)
	}
}
