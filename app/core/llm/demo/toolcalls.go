package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// The tools that the demonstration knows how to call.
const (
	calculator  = "calculator"
	currentTime = "current_time"
)

// maxCalls bounds the calls of one answer.
const maxCalls = 5

var (
	// Words that stand for signs.
	percentOf  = regexp.MustCompile(`(?i)(\d+(?:\.\d+)?)\s*(?:%|percent) of (\d+(?:\.\d+)?)`)
	squareRoot = regexp.MustCompile(`(?i)(?:the )?square root of (\d+(?:\.\d+)?)`)
	thousands  = regexp.MustCompile(`(\d),(\d{3})\b`)
	times      = regexp.MustCompile(`(?i)(\d)\s*(?:x|times|multiplied by)\s*(\d)`)
	// expression is numbers with signs between them.
	expression = regexp.MustCompile(`[-(]*(?:sqrt)?\(*\d+(?:\.\d+)?\)*(?:\s*(?:\*\*|[-+*/^])\s*[-(]*(?:sqrt)?\(*\d+(?:\.\d+)?\)*)+|sqrt\(\d+(?:\.\d+)?\)`)
	asksValue  = regexp.MustCompile(`(?i)\b(?:what(?:'s| is| are)|how much|calculate|compute|evaluate|solve|result of|was ist|wie viel)\b`)
	onlyDashes = regexp.MustCompile(`^\d+(?:-\d+)+$`) // a date, a range, a number to call
	asksTime   = regexp.MustCompile(`(?i)\bwhat(?:'s| is)? (?:the )?(?:current )?(?:time|date|day)\b|\bwhich day\b|\bcurrent (?:time|date)\b|\btoday's date\b|\bwie spät\b`)
	zone       = regexp.MustCompile(`\b(?:UTC|[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+(?:/[A-Z][A-Za-z_]+)?)\b`)
)

// callTools calls what helps with the message, all at once.
func callTools(t talk) (reply, bool) {
	var calls []core.ToolCall
	if t.offers(calculator) {
		for _, e := range expressions(t.last) {
			calls = append(calls, newCall(t, calculator, argument(t.req, calculator, "expression", e)))
		}
	}
	if t.offers(currentTime) && asksTime.MatchString(t.last) {
		arguments := "{}"
		if name := zone.FindString(t.last); name != "" {
			arguments = argument(t.req, currentTime, "timezone", name)
		}
		calls = append(calls, newCall(t, currentTime, arguments))
	}
	if len(calls) == 0 {
		return withoutTools(t)
	}
	calls = calls[:min(len(calls), maxCalls)]
	for i := range calls {
		calls[i].ID = fmt.Sprintf("%s_%d", calls[i].ID, i)
	}
	return reply{calls: calls}, true
}

// withoutTools says what is missing.
func withoutTools(t talk) (reply, bool) {
	switch {
	case len(expressions(t.last)) > 0:
		return say("I can only calculate with the tool calculator, which I may not use here.")
	case asksTime.MatchString(t.last):
		return say("I can only tell the time with the tool current_time, which I may not use here.")
	default:
		return pass()
	}
}

// newCall returns a call with the beginning of an id, which depends on all that
// was said: another call in the conversation has another one.
func newCall(t talk, tool, arguments string) core.ToolCall {
	h := sha256.New()
	for _, m := range t.req.Messages {
		fmt.Fprintf(h, "%s\x00%s\x00%s\x00", m.Role, m.ToolCallID, m.Content)
	}
	return core.ToolCall{ID: "demo_" + hex.EncodeToString(h.Sum(nil))[:12], Name: tool, Arguments: arguments}
}

// argument returns the arguments of a call with one value. Where the tool does not
// have the parameter, its first required one is taken.
func argument(req llm.Request, tool, parameter, value string) string {
	for _, spec := range req.Tools {
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
		}
		if spec.Name != tool || json.Unmarshal(spec.Parameters, &schema) != nil {
			continue
		}
		if _, ok := schema.Properties[parameter]; !ok && len(schema.Required) > 0 {
			parameter = schema.Required[0]
		}
	}
	raw, err := json.Marshal(map[string]string{parameter: value})
	if err != nil { // strings always can
		return "{}"
	}
	return string(raw)
}

// expressions returns what a message wants to have calculated.
func expressions(text string) []string {
	plain := strings.NewReplacer("−", "-", "×", "*", "·", "*", "÷", "/", " plus ", " + ", " minus ", " - ",
		" divided by ", " / ", " to the power of ", " ^ ", " squared", "^2").Replace(text)
	plain = thousands.ReplaceAllString(plain, "$1$2")
	plain = percentOf.ReplaceAllString(plain, "$1/100*$2")
	plain = squareRoot.ReplaceAllString(plain, "sqrt($1)")
	plain = times.ReplaceAllString(plain, "$1 * $2")
	asked := asksValue.MatchString(plain)
	trimmed := strings.TrimRight(strings.TrimSpace(plain), " =?")
	var out []string
	for _, e := range expression.FindAllString(plain, -1) {
		bare := e == trimmed
		e = balance(e)
		if !asked && !bare && !strings.ContainsAny(plain[len(plain)-1:], "?=") {
			continue
		}
		if onlyDashes.MatchString(e) && (strings.Count(e, "-") > 1 || !asked && !bare) {
			continue
		}
		out = append(out, e)
	}
	return out
}

// balance takes away the parentheses that have no other half.
func balance(e string) string {
	for strings.Count(e, "(") > strings.Count(e, ")") && strings.HasPrefix(e, "(") {
		e = e[1:]
	}
	for strings.Count(e, ")") > strings.Count(e, "(") && strings.HasSuffix(e, ")") {
		e = e[:len(e)-1]
	}
	return e
}

// fromResults answers from the results of tools, if these came last.
func fromResults(t talk) (reply, bool) {
	messages := t.req.Messages
	first := len(messages)
	for first > 0 && messages[first-1].Role == core.RoleTool {
		first--
	}
	if first == len(messages) {
		return pass()
	}
	calls := map[string]core.ToolCall{}
	if first > 0 {
		for _, c := range messages[first-1].ToolCalls {
			calls[c.ID] = c
		}
	}
	out := make([]string, 0, len(messages)-first)
	for _, m := range messages[first:] {
		out = append(out, report(calls[m.ToolCallID], m))
	}
	return say(strings.Join(out, "\n"))
}

// report puts one result into a sentence.
func report(call core.ToolCall, result llm.Message) string {
	tool, text := result.ToolName, brief(result.Content, 500)
	if tool == "" {
		tool = call.Name
	}
	if text == "" {
		return "The tool " + tool + " answered nothing."
	}
	switch tool {
	case calculator:
		if strings.Contains(text, "=") {
			return text
		}
		if e := onlyValue(call.Arguments); e != "" && !strings.Contains(text, e) && startsLikeNumber(text) {
			return e + " = " + text
		}
		if startsLikeNumber(text) {
			return "The result is " + text + "."
		}
	case currentTime:
		return "It is " + text + "."
	}
	return "The tool " + tool + " answered: " + text
}

func startsLikeNumber(text string) bool {
	text = strings.TrimLeft(text, "≈ -−")
	return text != "" && text[0] >= '0' && text[0] <= '9'
}

// onlyValue returns the string in a call's arguments, if it is the only one.
func onlyValue(arguments string) string {
	var values map[string]any
	if json.Unmarshal([]byte(arguments), &values) != nil || len(values) != 1 {
		return ""
	}
	for _, v := range values {
		if s, ok := v.(string); ok {
			return s
		}
	}
	return ""
}
