package summarize

import (
	"errors"

	"bobbin/app/core/llm"
)

// causeOf returns the value of Result.Cause for the error of a strategy. There are only a
// few values, so that they can be counted.
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
	case errNotSmaller:
		return "not_smaller"
	case errMarkup:
		return "markup"
	case errDialog:
		return "dialog"
	case errEcho, errPromptEcho:
		return "echo"
	case errRepetition:
		return "repetition"
	case errTooShort:
		return "too_short"
	case errLanguage:
		return "language"
	case errUngrounded:
		return "ungrounded"
	case errForgotten:
		return "forgotten"
	default:
		return "refused"
	}
}
