package summarize

import (
	"errors"

	"bobbin/app/core/llm"
)

// causeOf returns the word of Result.Cause for why a strategy was given up. There
// are a few of them, so that they can be counted.
func causeOf(err error) string {
	if errors.Is(err, errTimeLimit) {
		return "time_limit"
	}
	var r rejection
	if errors.As(err, &r) {
		return causeOfRejection(r)
	}
	if e := llm.AsError(err); e != nil {
		return "model_" + string(e.Kind)
	}
	return "strategy"
}

func causeOfRejection(r rejection) string {
	switch r {
	case errEmpty:
		return "empty"
	case errReasoningOnly:
		return "reasoning_only"
	case errCutOff:
		return "cut_off"
	case errToolCall:
		return "tool_call"
	case errErrorText:
		return "error_text"
	case errSmallTalk:
		return "small_talk"
	case errNotSmaller:
		return "not_smaller"
	default:
		return "refused"
	}
}
