package summarize

import (
	"errors"
	"fmt"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/prompttext"
)

// rejection says why an answer is not a summary: in a word that can be counted
// (Result.Cause), and in a sentence for the second request and the stored Note. Neither holds
// anything of the answer.
type rejection struct{ cause, reason string }

// Error returns the reason.
func (r rejection) Error() string { return r.reason }

var (
	errNothing       = rejection{"refused", "there was nothing to summarize"}
	errWindow        = rejection{"refused", "the context window of the summary model is too small"}
	errEmpty         = rejection{"empty", "the answer was empty"}
	errReasoningOnly = rejection{"reasoning_only", "the answer was reasoning only"}
	errNotEnded      = rejection{"refused", "the answer did not end normally"}
	errCutOff        = rejection{"cut_off", "the answer was cut off at the output limit"}
	errToolCall      = rejection{"tool_call", "the answer called a tool"}
	errNotSmaller    = rejection{"not_smaller", "the summary was not smaller than what it replaces"}
	errMarkup        = rejection{"markup", "the answer contained markup or data that is in no message"}
	errDialog        = rejection{"dialog", "the answer continued the conversation"}
	errEcho          = rejection{"echo", "the answer repeated the transcript"}
	errRepetition    = rejection{"repetition", "the answer repeated itself"}
	errTooShort      = rejection{"too_short", "the answer was too short for what it replaces"}
	errUngrounded    = rejection{"ungrounded", "the answer said too little about the messages"}
	errForgotten     = rejection{"forgotten", "the answer left out the earlier summary"}
	errTimeLimit     = rejection{"time_limit", "the summary took longer than its time limit"} // of a context that Request.TimeLimit ended
	errSecrets       = rejection{"refused", "it repeats secrets, or has characters that cannot be stored"}
)

// rejectionOf returns why a strategy was abandoned. The text of a provider's error is not public: of
// a failed call it names only the kind.
func rejectionOf(err error) (r rejection) {
	switch e := llm.AsError(err); {
	case errors.As(err, &r):
		return r
	case e != nil:
		return rejection{"model_" + string(e.Kind), fmt.Sprintf("the model failed (%s)", e.Kind)}
	default:
		return rejection{"strategy", "the strategy failed"}
	}
}

// acceptAnswer returns the text of an answer that ended normally and is not empty, or why
// it is refused. Adapters translate known reasons to FinishStop and FinishLength; the others are
// reasons that some providers of the OpenAI dialect send.
func acceptAnswer(res llm.Response) (string, error) {
	if len(res.ToolCalls) > 0 {
		return "", errToolCall
	}
	switch strings.ToLower(string(res.Finish)) {
	case string(core.FinishStop), "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed":
	case string(core.FinishToolCalls):
		return "", errToolCall
	case string(core.FinishLength), "max_tokens", "max_output_tokens", "model_length":
		return "", errCutOff
	default:
		return "", errNotEnded
	}
	text := cleanAnswer(res.Text)
	switch {
	case text == "" && (strings.TrimSpace(res.Text) != "" || res.Reasoning != ""):
		return "", errReasoningOnly
	case text == "":
		return "", errEmpty
	}
	return text, nil
}

// cleanAnswer removes what models put around an answer: thoughts written as text, a code
// fence around the whole, our own summary tags. Thoughts without an end tag are the whole
// text: the answer is empty.
func cleanAnswer(text string) string {
	text, _ = llm.CutThoughts(strings.ToValidUTF8(text, "\uFFFD"))
	text = prompttext.Unfenced(strings.TrimSpace(text))
	const open = "<summary>"
	if len(text) >= len(open) && strings.EqualFold(text[:len(open)], open) {
		text = text[len(open):]
	}
	return strings.TrimSpace(strings.TrimSuffix(text, "</summary>"))
}
