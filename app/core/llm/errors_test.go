package llm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

func TestErrorUnwrapsToKindAndCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("connection refused")
	err := fmt.Errorf("answer: %w", &llm.Error{Kind: llm.KindNetwork, Provider: "openai", Message: "not reached", Err: cause})
	if !errors.Is(err, core.ErrModel) || !errors.Is(err, cause) {
		t.Errorf("got %v, want both core.ErrModel and the cause", err)
	}
	if !llm.IsKind(err, llm.KindNetwork) || llm.IsKind(err, llm.KindAuth) || llm.IsKind(cause, llm.KindNetwork) {
		t.Errorf("IsKind of %v is wrong", err)
	}
	if want := "answer: openai: network: not reached"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if llm.AsError(nil) != nil {
		t.Error("AsError(nil): got an error, want nil")
	}
}

func TestCanceledErrorTellsADeadlineApart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	<-ctx.Done()
	err := llm.CanceledError(ctx, "x")
	if err.Kind != llm.KindCanceled || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want KindCanceled that wraps DeadlineExceeded", err)
	}
	if err.Retryable() {
		t.Error("a canceled call must not be repeated")
	}
}
