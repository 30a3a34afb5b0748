package llm

import (
	"cmp"
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
func WithRetry(model Model, backoff Backoff) Model { return &retrying{model: model, backoff: backoff} }

type retrying struct {
	model   Model
	backoff Backoff
}

// Info describes the model underneath.
func (r *retrying) Info() Info { return r.model.Info() }

// Stream is the model's Stream, retried until it yields a delta.
func (r *retrying) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		err := Repeat(ctx, r.model.Info().Name, r.backoff, func(ctx context.Context) error { return r.streamOnce(ctx, req, yield) })
		if err != nil {
			yield(Delta{}, err)
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

// Repeat calls do and, where it fails with an error that is Retryable, calls it
// again, as WithRetry does with streams. Name is what the log calls the model.
func Repeat(ctx context.Context, name string, b Backoff, do func(context.Context) error) error {
	b.Retries = cmp.Or(b.Retries, DefaultRetries)
	if b.Base <= 0 {
		b.Base = DefaultBackoffBase
	}
	if b.Max <= 0 {
		b.Max = DefaultBackoffMax
	}
	if b.RetryAfterLimit <= 0 {
		b.RetryAfterLimit = DefaultRetryAfterLimit
	}
	if b.Logger == nil {
		b.Logger = slog.New(slog.DiscardHandler)
	}
	for try := 0; ; try++ {
		failure := do(ctx)
		if failure == nil {
			return nil
		}
		if err := b.waitForRetry(ctx, name, try, failure); err != nil {
			return err
		}
	}
}

// waitForRetry waits until the call may be repeated. It returns the error that ends the
// call if it may not.
func (b Backoff) waitForRetry(ctx context.Context, name string, try int, failure error) error {
	e := AsError(failure)
	if e == nil || !e.Retryable() || try >= b.Retries || e.RetryAfter > b.RetryAfterLimit {
		return failure
	}
	if ctx.Err() != nil {
		return CanceledError(ctx, e.Provider)
	}
	pause := b.retryDelay(try, e.RetryAfter)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= pause {
		return failure
	}
	b.Logger.WarnContext(ctx, "model call repeated", "model", name,
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
func (b Backoff) retryDelay(try int, retryAfter time.Duration) time.Duration {
	if retryAfter > 0 {
		// Up to a tenth more, so that clients with the same Retry-After do not
		// return in the same moment.
		return retryAfter + randomUpTo(retryAfter/10)
	}
	full := b.Max
	if try < 30 { // beyond, the shift could overflow
		full = min(full, b.Base<<try)
	}
	return full/2 + randomUpTo(full/2)
}

func randomUpTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}
