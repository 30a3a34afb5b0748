package llm

import (
	"context"
	"iter"
	"log/slog"
	"math/rand/v2"
	"time"

	"bobbin/app/core"
)

// How often and after how long a failed call is repeated.
const (
	maxRetries    = 3                      // tries after the first
	backoffBase   = 500 * time.Millisecond // the first wait, doubled each time; half of every wait is random
	maxRetryAfter = time.Minute            // of the waits that providers ask for; for a longer one the error is returned immediately
)

// WithRetry returns a model that repeats calls which failed before their first
// delta, with every error that is Retryable. What was once yielded is never
// repeated. A provider's Retry-After is honored. While it waits, a done ctx ends
// the call with KindCanceled; if ctx cannot last until the next try, the
// provider's error is returned without waiting. Each repetition is logged. Safe for concurrent use.
func WithRetry(model Model, logger *slog.Logger) Model {
	return &retrying{Model: model, logger: logger}
}

type retrying struct {
	Model
	logger *slog.Logger
}

// Stream is the model's Stream, retried until it yields a delta.
func (r *retrying) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	if req.Once {
		return r.Model.Stream(ctx, req)
	}
	return func(yield func(Delta, error) bool) {
		hasBegun := false
		err := Repeat(ctx, r.Info().Name, r.logger, func(ctx context.Context) error {
			for d, err := range r.Model.Stream(ctx, req) {
				if err != nil && !hasBegun {
					return err
				}
				hasBegun = hasBegun || d != Delta{Queued: d.Queued} // else it is still in the queue
				if !yield(d, err) || err != nil {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			yield(Delta{}, err)
		}
	}
}

// Repeat calls do and, where it fails with an error that is Retryable, calls it
// again, as WithRetry does with streams. Name is what the log calls the model.
func Repeat(ctx context.Context, name string, logger *slog.Logger, do func(context.Context) error) error {
	for try := 0; ; try++ {
		failure := do(ctx)
		e := AsError(failure)
		if e == nil || !e.Retryable() || try >= maxRetries || e.RetryAfter > maxRetryAfter {
			return failure
		}
		if ctx.Err() != nil {
			return CanceledError(ctx, e.Provider)
		}
		pause := backoffBase << try / 2
		pause += rand.N(pause)
		if e.RetryAfter > 0 { // up to a tenth more, so that clients with the same Retry-After do not return in the same moment
			pause = e.RetryAfter + rand.N(e.RetryAfter/10+1)
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= pause {
			return failure
		}
		logger.WarnContext(ctx, "model call repeated", "model", name,
			"kind", string(e.Kind), "status", e.Status, "try", try+1, "wait", pause)
		if core.Sleep(ctx, pause) != nil {
			return CanceledError(ctx, e.Provider)
		}
	}
}
