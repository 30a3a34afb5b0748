package llm

import (
	"context"
	"iter"
)

// Repeat calls do and, where it fails with an error that is Retryable, calls it
// again, as WithRetry does with streams. Name is what the log calls the model.
func Repeat(ctx context.Context, name string, backoff Backoff, do func(context.Context) error) error {
	for _, err := range WithRetry(errorOnlyModel{name: name, do: do}, backoff).Stream(ctx, Request{}) {
		return err
	}
	return nil
}

// errorOnlyModel is a call that yields nothing but its error.
type errorOnlyModel struct {
	name string
	do   func(context.Context) error
}

// Info names the model.
func (s errorOnlyModel) Info() Info { return Info{Name: s.name} }

// Stream makes the call.
func (s errorOnlyModel) Stream(ctx context.Context, _ Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		if err := s.do(ctx); err != nil {
			yield(Delta{}, err)
		}
	}
}
