package llm_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/llmtest"
)

func ask(text string) llm.Request {
	return llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: text}}}
}

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
				got, err := llm.Collect(llm.WithRetry(script, llm.Backoff{}).Stream(t.Context(), ask("x")), nil)
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
		_, err := llm.Collect(llm.WithRetry(script, llm.Backoff{}).Stream(t.Context(), ask("x")), nil)
		if !llm.IsKind(err, llm.KindOverloaded) {
			t.Errorf("got %v, want the last error", err)
		}
		if got := len(script.Requests()); got != 4 {
			t.Errorf("got %d requests, want 4", got)
		}
		// Waits of 0.5, 1 and 2 s, the half of each random.
		if took := time.Since(start); took < 1750*time.Millisecond || took > 3500*time.Millisecond {
			t.Errorf("took %v, want between 1.75 and 3.5 s", took)
		}
	})
}

func TestRetryWaitsNoLongerThanMax(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		script := llmtest.Scripted(llmtest.Step{Err: failure(llm.KindNetwork), Repeat: true})
		start := time.Now()
		_, err := llm.Collect(llm.WithRetry(script, llm.Backoff{Retries: 40, Base: time.Second, Max: 2 * time.Second}).Stream(t.Context(), ask("x")), nil)
		if !llm.IsKind(err, llm.KindNetwork) {
			t.Errorf("got %v, want the last error", err)
		}
		if took := time.Since(start); took > 80*time.Second {
			t.Errorf("took %v, want at most 2 s a try", took)
		}
	})
}

func TestRetryNone(t *testing.T) {
	t.Parallel()
	script := llmtest.Scripted(failure(llm.KindOverloaded), "hello")
	_, err := llm.Collect(llm.WithRetry(script, llm.Backoff{Retries: -1}).Stream(t.Context(), ask("x")), nil)
	if !llm.IsKind(err, llm.KindOverloaded) || script.Remaining() != 1 {
		t.Errorf("got %v with %d answers left, want the first error", err, script.Remaining())
	}
}

func TestRetryNotAfterTheFirstDelta(t *testing.T) {
	t.Parallel()
	script := llmtest.Scripted(llmtest.Step{Text: []string{"par"}, Err: failure(llm.KindTruncated)}, "hello")
	got, err := llm.Collect(llm.WithRetry(script, llm.Backoff{}).Stream(t.Context(), ask("x")), nil)
	if !llm.IsKind(err, llm.KindTruncated) || got.Text != "par" {
		t.Errorf("got %q, %v, want the partial answer and its error", got.Text, err)
	}
	if n := len(script.Requests()); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
}

func TestRetryHonorsRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := failure(llm.KindRateLimit)
		told.RetryAfter = 20 * time.Second
		start := time.Now()
		got, err := llm.Collect(llm.WithRetry(llmtest.Scripted(told, "hello"), llm.Backoff{}).Stream(t.Context(), ask("x")), nil)
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
		_, err := llm.Collect(llm.WithRetry(llmtest.Scripted(told, "hello"), llm.Backoff{}).Stream(t.Context(), ask("x")), nil)
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
		_, err := llm.Collect(llm.WithRetry(script, llm.Backoff{}).Stream(ctx, ask("x")), nil)
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
		_, err := llm.Collect(llm.WithRetry(llmtest.Scripted(told, "hello"), llm.Backoff{}).Stream(ctx, ask("x")), nil)
		if llm.AsError(err) != told || time.Since(start) != 0 {
			t.Errorf("got %v after %v, want the provider's error at once", err, time.Since(start))
		}
	})
}

func TestRetryStopsWhenTheCallerLeaves(t *testing.T) {
	t.Parallel()
	script := llmtest.Scripted(llmtest.Step{Repeat: true, Text: []string{"a", "b"}}).WithInfo(llm.Info{Name: "m"})
	model := llm.WithRetry(script, llm.Backoff{})
	for d, err := range model.Stream(t.Context(), ask("x")) {
		if err != nil || d.Text != "a" {
			t.Errorf("got %q, %v, want a", d.Text, err)
		}
		break
	}
	if n := len(script.Requests()); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
	if diff := cmp.Diff(llm.Info{Name: "m"}, model.Info()); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
}
