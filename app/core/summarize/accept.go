package summarize

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// rejection says why an answer is not a summary. The same words stand in the
// second request and in the stored Note, so they hold nothing of the answer.
type rejection string

// Error returns the reason.
func (r rejection) Error() string { return string(r) }

const (
	errEmpty         = rejection("the answer was empty")
	errReasoningOnly = rejection("the answer was reasoning only")
	errCutOff        = rejection("the answer was cut off at the output limit")
	errToolCall      = rejection("the answer called a tool")
	errErrorText     = rejection("the answer was an error text")
	errSmallTalk     = rejection("the answer went on with the conversation")
	errNotSmaller    = rejection("the summary was not smaller than what it replaces")
	errEcho          = rejection("the answer repeated the transcript")
)

// accept returns the text of the answer if it may be a summary of the transcript, else
// why not. Its size is not judged here.
func accept(res llm.Response, failure error, transcript string) (string, error) {
	switch {
	case len(res.ToolCalls) > 0 || res.Finish == core.FinishToolCalls:
		return "", errToolCall
	case cutOff(res.Finish):
		return "", errCutOff
	case !endedNormally(res.Finish):
		return "", rejection("the answer did not end normally")
	}
	text := cleanAnswer(res.Text)
	switch {
	case text == "" && (res.Text != "" && strings.TrimSpace(res.Text) != "" || res.Reasoning != ""):
		return "", errReasoningOnly
	case text == "":
		return "", errEmpty
	case writtenToolCall(text):
		return "", errToolCall
	case isErrorText(text, failure):
		return "", errErrorText
	case echoes(text, transcript):
		return "", errEcho
	case isSmallTalk(text):
		return "", errSmallTalk
	}
	return text, nil
}

// endedNormally reports whether the model stopped by itself. Adapters translate
// to FinishStop what they know; the others are words that providers of the
// OpenAI dialect were seen to send.
func endedNormally(f core.FinishReason) bool {
	switch strings.ToLower(string(f)) {
	case string(core.FinishStop), "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed":
		return true
	default:
		return false
	}
}

func cutOff(f core.FinishReason) bool {
	switch strings.ToLower(string(f)) {
	case string(core.FinishLength), "max_tokens", "max_output_tokens", "model_length":
		return true
	default:
		return false
	}
}

// cleanAnswer takes off what models put around an answer: thoughts written as
// text, a code fence around the whole, our own summary tags. Thoughts that were
// never closed are all there is: the answer is empty.
func cleanAnswer(text string) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	for _, tag := range []string{"think", "thinking", "reasoning"} {
		rest, ok := cutPrefixFold(text, "<"+tag+">")
		if !ok {
			continue
		}
		_, after, _ := strings.Cut(rest, "</"+tag+">")
		text = strings.TrimSpace(after)
	}
	text = unfence(text)
	if inner, ok := cutPrefixFold(text, "<summary>"); ok {
		text = strings.TrimSpace(strings.TrimSuffix(inner, "</summary>"))
	}
	return strings.TrimSpace(text)
}

// unfence returns what is inside a code fence that encloses the whole text.
func unfence(text string) string {
	if !strings.HasPrefix(text, "```") || !strings.HasSuffix(text, "```") || strings.Count(text, "```") != 2 {
		return text
	}
	first, body, ok := strings.Cut(text, "\n")
	if !ok || strings.ContainsAny(strings.TrimPrefix(first, "```"), " \t`") {
		return text
	}
	return strings.TrimSpace(strings.TrimSuffix(body, "```"))
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// What can be told from a summary safely is short and begins in a telling way: a
// summary may speak of errors and may quote small talk, but it is not only that.
const (
	maxErrorText = 400 // bytes
	maxSmallTalk = 400 // bytes
)

var (
	toolCallText = regexp.MustCompile(`(?i)^\s*(?:<\|?\s*(?:tool_call|function_call|tool_use|invoke|function=|python_tag)|\[TOOL_CALLS\]` +
		`|\{\s*"(?:name|tool|function)"\s*:\s*"[^"]*"\s*,\s*"(?:arguments|parameters|input)"\s*:)`)
	errorText = regexp.MustCompile(`(?i)^(?:` +
		`(?:an? )?(?:unexpected |internal |api |server |http |fatal )*(?:error|exception)\s*(?:[:(\[]|code\b|occurred|calling|while|generating|\d{3})` +
		`|traceback \(most recent call last\)` +
		`|(?:http(?:/\d\.\d)? )?[45]\d\d[\s:,-]+(?:[a-z ]*error|bad request|unauthorized|forbidden|not found|too many requests|bad gateway|service unavailable|gateway time-?out)` +
		`|(?:rate limit|quota|context length|context window|maximum context length)[a-z ]* (?:exceeded|reached)` +
		`|(?:internal server error|service unavailable|bad gateway|gateway time-?out|request timed out|too many requests)\s*(?:[.:!]|$)` +
		`|insufficient_quota|(?:failed to|could not) (?:generate|summarize|create|complete)|no (?:summary|response) (?:was )?(?:available|generated))`)
	errorObject   = regexp.MustCompile(`(?i)^\{\s*"(?:error|errors|detail|message|code|status|type)"\s*:`)
	refusalText   = regexp.MustCompile(`(?i)^(?:i['’]m sorry|i am sorry|sorry|i apologi[sz]e|unfortunately|as an ai)\b.{0,120}\b(?:can['’]?not|can['’]t|unable|not able|won['’]t)\b`)
	refusalAbroad = regexp.MustCompile(`(?i)^(?:es tut mir leid|tut mir leid|entschuldigung|lo siento|je suis désolée?|désolée?|mi dispiace|desculpe|извините|простите|к сожалению)[ ,.!].{0,160}(?:nicht|no puedo|ne peux|non posso|não posso|не могу)` +
		`|^(?:抱歉|对不起|很抱歉|申し訳|すみません|죄송).{0,60}(?:无法|不能|できません|できない|없습니다)`)
	smallTalkAbroad = regexp.MustCompile(`(?i)^(?:¡?claro|¡?hola|gerne|klar|natürlich|hallo|guten tag|bien sûr|bonjour|certo|ciao|claro que sim|olá|конечно|привет|здравствуйте)[ ,.!].{0,200}` +
		`(?:wie kann ich (?:dir|ihnen|euch)|womit kann ich|en qué puedo|comment puis-je|come posso|como posso|чем (?:я )?могу)|^(?:好的|当然|你好|您好|もちろん|はい|こんにちは|네|물론).{0,60}(?:有什么可以|需要什么|帮您|帮你|お手伝い|ご用件|도와)`)
	smallTalkOpen = regexp.MustCompile(`(?i)^(?:sure|of course|certainly|absolutely|okay|ok|got it|understood|great|hello|hi|hey|thanks|thank you|happy to help|i['’]d be happy|i['’]m happy|how (?:can|may) i)\b`)
	offerText     = regexp.MustCompile(`(?i)\b(?:how (?:can|may|else can) i (?:help|assist)|what (?:would|do) you (?:like|want|need)|(?:is there )?anything else` +
		`|let me know (?:if|what|how)|feel free to|please (?:provide|share|send|paste|tell me)|what can i (?:do|help))\b`)
	onlyAgreement = regexp.MustCompile(`(?i)^(?:sure|of course|certainly|absolutely|okay|ok|got it|understood|done|yes|no|n/?a|none|null|nil|undefined)[.!]*$`)
)

// writtenToolCall reports whether the text is a tool call in writing, as models
// produce it when no tools are offered.
func writtenToolCall(text string) bool { return toolCallText.MatchString(text) }

// isErrorText reports whether the text is nothing but an error: of a proxy, of a
// provider, or the words of the failure that this summary just met.
func isErrorText(text string, failure error) bool {
	if e := llm.AsError(failure); e != nil && len(e.Message) > 8 &&
		strings.Contains(text, e.Message) && len(text) < 2*len(e.Message)+100 {
		return true
	}
	if len(text) > maxErrorText || strings.Contains(text, "\n#") {
		return false
	}
	if errorObject.MatchString(text) && strings.HasSuffix(text, "}") {
		return true
	}
	return errorText.MatchString(text) || refusalText.MatchString(text) || refusalAbroad.MatchString(text)
}

// isSmallTalk reports whether the text answers the user instead of summing up, or goes
// on with the transcript.
func isSmallTalk(text string) bool {
	if at := turnLine.FindStringIndex(text); at != nil && at[0] == 0 {
		return true
	}
	if len(text) > maxSmallTalk || strings.Contains(text, "\n#") || strings.HasPrefix(text, "#") {
		return false
	}
	return onlyAgreement.MatchString(text) || smallTalkAbroad.MatchString(text) || smallTalkOpen.MatchString(text) && offerText.MatchString(text)
}

// What makes an answer a repetition of the transcript.
const (
	echoedTurns = 3  // so many of its messages, as they stand there
	echoedLine  = 24 // bytes of a line that is no coincidence
)

// echoes reports whether the answer repeats the transcript instead of summing it up:
// its fence, several of its messages, or hardly anything but its lines. Single lines
// may be quoted, and those of an earlier summary are carried forward.
func echoes(text, transcript string) bool {
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
	return turns >= echoedTurns || len(text) > maxSmallTalk && 10*echoed > 8*len(text) && 2*echoed > len(transcript)
}

// reason says in public words why a strategy was given up. A provider's own
// words are not public: of a failed call only the kind is told.
func reason(err error) string {
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
