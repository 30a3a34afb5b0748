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

// Backoff is how often and after how long a failed call is repeated. The zero
// value takes the defaults above.
type Backoff struct {
	Retries int           // tries after the first; negative = none
	Base    time.Duration // the first wait, doubled each time; half of every wait is random
	Max     time.Duration // no wait of our own is longer
	// RetryAfterLimit bounds the wait that a provider asks for. A provider that
	// asks for more is not waited for: its error is returned immediately.
	RetryAfterLimit time.Duration
	Logger          *slog.Logger // logs each repetition; nil = none is logged
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

// Stream is the model's Stream, retried until it yields a delta.
func (r *retrying) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		for try := 0; ; try++ {
			failure := r.streamOnce(ctx, req, yield)
			if failure == nil {
				return
			}
			if err := r.waitForRetry(ctx, try, failure); err != nil {
				yield(Delta{}, err)
				return
			}
		}
	}
}

// streamOnce forwards one stream. It returns the error that came before the first
// delta; nil = the call is finished.
func (r *retrying) streamOnce(ctx context.Context, req Request, yield func(Delta, error) bool) error {
	hasBegun := false
	for d, err := range r.model.Stream(ctx, req) {
		if err != nil && !hasBegun {
			return err
		}
		hasBegun = true
		if !yield(d, err) || err != nil {
			return nil
		}
	}
	return nil
}

// waitForRetry waits until the call may be repeated. It returns the error that ends the
// call if it may not.
func (r *retrying) waitForRetry(ctx context.Context, try int, failure error) error {
	e := AsError(failure)
	if e == nil || !e.Retryable() || try >= r.backoff.Retries || e.RetryAfter > r.backoff.RetryAfterLimit {
		return failure
	}
	if ctx.Err() != nil {
		return CanceledError(ctx, e.Provider)
	}
	pause := r.retryDelay(try, e.RetryAfter)
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

// retryDelay returns how long to wait before the repetition that follows the try.
func (r *retrying) retryDelay(try int, retryAfter time.Duration) time.Duration {
	if retryAfter > 0 {
		// Up to a tenth more, so that clients with the same Retry-After do not
		// return in the same moment.
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
