package summarize

import (
	"errors"
	"fmt"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/prompttext"
)

// rejection says why an answer is not a summary. The same text goes into the second
// request and the stored Note, so it holds nothing of the answer.
type rejection string

// Error returns the reason.
func (r rejection) Error() string { return string(r) }

const (
	errEmpty         = rejection("the answer was empty")
	errReasoningOnly = rejection("the answer was reasoning only")
	errCutOff        = rejection("the answer was cut off at the output limit")
	errToolCall      = rejection("the answer called a tool")
	errNotSmaller    = rejection("the summary was not smaller than what it replaces")
	errMarkup        = rejection("the answer contained markup or data that is in no message")
	errDialog        = rejection("the answer continued the conversation")
	errEcho          = rejection("the answer repeated the transcript")
	errPromptEcho    = rejection("the answer repeated the instructions")
	errRepetition    = rejection("the answer repeated itself")
	errTooShort      = rejection("the answer was too short for what it replaces")
	errLanguage      = rejection("the answer was not in the language of the conversation")
	errUngrounded    = rejection("the answer said too little about the messages")
	errForgotten     = rejection("the answer left out the earlier summary")
	errLoose         = rejection("the words of the answer follow each other as in no message")
)

// acceptAnswer returns the text of an answer that ended normally and is not empty, or why
// it is refused.
func acceptAnswer(res llm.Response) (string, error) {
	switch {
	case len(res.ToolCalls) > 0 || res.Finish == core.FinishToolCalls:
		return "", errToolCall
	case isCutOff(res.Finish):
		return "", errCutOff
	case !endedNormally(res.Finish):
		return "", rejection("the answer did not end normally")
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

// endedNormally reports whether the model stopped by itself. Adapters translate known
// reasons to FinishStop; the others are reasons that some providers of the OpenAI dialect
// send.
func endedNormally(f core.FinishReason) bool {
	switch strings.ToLower(string(f)) {
	case string(core.FinishStop), "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed":
		return true
	default:
		return false
	}
}

func isCutOff(f core.FinishReason) bool {
	switch strings.ToLower(string(f)) {
	case string(core.FinishLength), "max_tokens", "max_output_tokens", "model_length":
		return true
	default:
		return false
	}
}

// cleanAnswer removes what models put around an answer: thoughts written as text, a code
// fence around the whole, our own summary tags. Thoughts without an end tag are the whole
// text: the answer is empty.
func cleanAnswer(text string) string {
	text = prompttext.Unfenced(strings.TrimSpace(llm.CutThoughts(strings.ToValidUTF8(text, "\uFFFD"))))
	text, _ = cutPrefixFold(text, "<summary>")
	return strings.TrimSpace(strings.TrimSuffix(text, "</summary>"))
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// What makes an answer a repetition of the transcript.
const (
	echoedTurns = 3   // verbatim messages
	echoedLine  = 24  // bytes of a line that is no coincidence
	echoedText  = 400 // bytes of an answer that may consist of such lines alone
)

// isEcho reports whether the answer repeats the transcript instead of summarizing it:
// its fence, several of its messages, or almost only its lines. Single lines may be
// quoted, and lines of an earlier summary are carried forward.
func isEcho(text, transcript string) bool {
	if strings.Contains(text, "<transcript>") || strings.Contains(text, "</transcript>") {
		return true
	}
	lines := map[string]bool{}
	for line := range strings.Lines(transcript) {
		lines[strings.TrimSpace(line)] = true
	}
	turns, echoed := 0, 0
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !lines[line] {
			continue
		}
		if turnLine.MatchString(line) {
			turns++
		}
		if len(line) >= echoedLine {
			echoed += len(line)
		}
	}
	return turns >= echoedTurns || len(text) > echoedText && 10*echoed > 8*len(text) && 2*echoed > len(transcript)
}

// publicReason returns why a strategy was abandoned. The text of a provider's error is
// not public: of a failed call it names only the kind.
func publicReason(err error) string {
	var r rejection
	switch e := llm.AsError(err); {
	case errors.Is(err, errTimeLimit):
		return err.Error()
	case errors.As(err, &r):
		return r.Error()
	case e != nil:
		return fmt.Sprintf("the model failed (%s)", e.Kind)
	default:
		return "the strategy failed"
	}
}
