package summarize

import (
	"errors"
	"fmt"
	"testing"

	"bobbin/app/core/llm"
)

// Every reason to give a strategy up has a word of its own, that can be counted.
func TestCauses(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"time_limit": fmt.Errorf("%w (10s)", errTimeLimit), "model_rate_limit": &llm.Error{Kind: llm.KindRateLimit}, "strategy": errors.New("x"),
		"empty": errEmpty, "reasoning_only": errReasoningOnly, "cut_off": errCutOff, "tool_call": errToolCall, "markup": errMarkup,
		"dialog": errDialog, "echo": errEcho, "repetition": errRepetition, "too_short": errTooShort,
		"ungrounded": errUngrounded, "forgotten": errForgotten, "not_smaller": fmt.Errorf("twice: %w", errNotSmaller), "refused": errNotEnded,
	} {
		if got := causeOf(err); got != want {
			t.Errorf("%v: got %q, want %q", err, got, want)
		}
	}
}
