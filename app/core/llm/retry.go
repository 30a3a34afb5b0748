package llm

import (
	"context"
	"iter"
	"log/slog"
	"math/rand/v2"
	"time"
)

// What a zero Backoff means.
const (
	DefaultRetries         = 3
	DefaultBackoffBase     = 500 * time.Millisecond
	DefaultBackoffMax      = 10 * time.Second
	DefaultRetryAfterLimit = time.Minute
)

// Backoff says how often and after how long a failed call is repeated. The zero
// value takes the defaults above.
type Backoff struct {
	Retries int           // tries after the first; negative = none
	Base    time.Duration // the first wait, doubled each time; half of every wait is random
	Max     time.Duration // no wait of our own is longer
	// RetryAfterLimit bounds the wait that a provider asks for. A provider that
	// asks for more is not waited for: its error is returned at once.
	RetryAfterLimit time.Duration
	Logger          *slog.Logger // hears of each repetition; nil = nobody
}

// WithRetry returns a model that repeats calls which failed before their first
// delta, with every error that is Retryable. What was once yielded is never
// repeated. A provider's Retry-After is honored. While it waits, a done ctx ends
// the call with KindCanceled; if ctx cannot last until the next try, the
// provider's error is returned without waiting. Safe for concurrent use.
func WithRetry(model Model, backoff Backoff) Model {
	if backoff.Retries == 0 {
		backoff.Retries = DefaultRetries
	}
	if backoff.Base <= 0 {
		backoff.Base = DefaultBackoffBase
	}
	if backoff.Max <= 0 {
		backoff.Max = DefaultBackoffMax
	}
	if backoff.RetryAfterLimit <= 0 {
		backoff.RetryAfterLimit = DefaultRetryAfterLimit
	}
	if backoff.Logger == nil {
		backoff.Logger = slog.New(slog.DiscardHandler)
	}
	return &retrying{model: model, backoff: backoff}
}

type retrying struct {
	model   Model
	backoff Backoff
}

// Info describes the model underneath.
func (r *retrying) Info() Info { return r.model.Info() }

// Stream is the model's Stream, tried again until it says something.
func (r *retrying) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		for try := 0; ; try++ {
			failure := r.once(ctx, req, yield)
			if failure == nil {
				return
			}
			if err := r.wait(ctx, try, failure); err != nil {
				yield(Delta{}, err)
				return
			}
		}
	}
}

// once passes one stream on. It returns the error that came before the first
// delta; nil means that there is nothing more to do.
func (r *retrying) once(ctx context.Context, req Request, yield func(Delta, error) bool) error {
	begun := false
	for d, err := range r.model.Stream(ctx, req) {
		if err != nil && !begun {
			return err
		}
		begun = true
		if !yield(d, err) || err != nil {
			return nil
		}
	}
	return nil
}

// wait waits until the call may be repeated. It returns the error that ends the
// call if it may not.
func (r *retrying) wait(ctx context.Context, try int, failure error) error {
	e := AsError(failure)
	if e == nil || !e.Retryable() || try >= r.backoff.Retries || e.RetryAfter > r.backoff.RetryAfterLimit {
		return failure
	}
	if ctx.Err() != nil {
		return CanceledError(ctx, e.Provider)
	}
	pause := r.pause(try, e.RetryAfter)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= pause {
		return failure
	}
	r.backoff.Logger.WarnContext(ctx, "model call repeated", "model", r.model.Info().Name,
		"kind", string(e.Kind), "status", e.Status, "try", try+1, "wait", pause)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return CanceledError(ctx, e.Provider)
	}
}

// pause returns how long to wait before the repetition that follows the try.
func (r *retrying) pause(try int, retryAfter time.Duration) time.Duration {
	if retryAfter > 0 {
		// A tenth more at most, so that all who were told the same do not come
		// back in the same moment.
		return retryAfter + randomUpTo(retryAfter/10)
	}
	full := r.backoff.Max
	if try < 30 { // beyond, the shift could overflow
		full = min(full, r.backoff.Base<<try)
	}
	return full/2 + randomUpTo(full/2)
}

func randomUpTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}
