package demo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/prompttext"
)

// What the demonstration says, in quotations of at most maxLine bytes. It searches for the
// first maxWords words of a question: each is looked for in the whole prompt.
const (
	maxLine      = 300
	maxWords     = 50
	introduction = "I am Bobbin's demonstration model: there is no language model behind me, so that you can try conversations, " +
		"tools and context management without a key. For a real one set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or run Ollama, and start Bobbin again.\n\n"
	noted     = "It is in our conversation now. Ask me about it later, and I quote what my prompt holds of it. "
	noAnswer  = "Nothing in my prompt answers that, and I have no knowledge of my own. "
	abilities = "I can calculate (“what is 17 * 23?”), tell the time, and quote what you wrote: tell me your name, and ask me for it later."
)

// What others write into the prompt.
const (
	summarizerMark = "You summarize conversations"
	titlerMark     = "You write titles of conversations"
	summaryTitle   = "Summary of earlier conversation:"
	notesTitle     = "Notes on the work so far, in place of messages " // of a tool loop, in the user's place
)

// What messages are read by.
var (
	attachment = regexp.MustCompile(`(?m)^\[(?:image|file) "[^\n]*\]$`) // its line in a message
	asks       = regexp.MustCompile(`(?i)[?？]\s*$|^(?:what|who|when|where|why|how|which|tell me|do|did|can|is|are)\b`)
	fillers    = regexp.MustCompile(`\b(?:about|and|are|can|did|does|for|had|has|have|how|know|our|remember|said|say|tell|that|the|this|was|were|what|when|where|which|who|why|will|would|you|your)\b`) // words without a subject
	word       = regexp.MustCompile(`my \pL+|[\pL\d]{3,}`)                                                                                                                                              // to find an answer by
	thousands  = regexp.MustCompile(`(\d),(\d{3})\b`)
	percentOf  = regexp.MustCompile(`(?i)(\d)\s*(?:%|percent) of (\d)`)
	expression = regexp.MustCompile(`[-(]*\d+(?:\.\d+)?\)*(?:\s*[-+*/^]\s*[-(]*\d+(?:\.\d+)?\)*)+`)
	asksValue  = regexp.MustCompile(`(?i)\b(?:what(?:'s| is| are)|how much|calculate|compute)\b`)
	asksTime   = regexp.MustCompile(`(?i)\bwhat(?:'s| is)? (?:the )?(?:current )?(?:time|date|day)\b|\bcurrent (?:time|date)\b`)
)

// answer returns a text, or tool calls.
func (m *Model) answer(req llm.Request) (string, []core.ToolCall) {
	system := strings.Join(req.System, "\n")
	said, question, answered := readMessages(req.Messages)
	switch {
	case strings.Contains(system, summarizerMark):
		return m.summarize(question), nil
	case strings.HasPrefix(system, titlerMark):
		return "", nil // the titler takes the first words of the question
	}
	_, summary, _ := strings.Cut(system, summaryTitle)
	summary, _, _ = strings.Cut(summary, "</conversation_summary>")
	asked := map[string]string{} // the expression of a call
	lines := ""
	for _, m := range req.Messages {
		for _, c := range m.ToolCalls {
			asked[c.ID] = expression.FindString(c.Arguments)
		}
		text := prompttext.Line(m.Content, maxLine)
		switch {
		case m.Role != core.RoleTool:
			lines = ""
		case m.ToolName == "calculator" && !strings.HasPrefix(text, "error"):
			lines += asked[m.ToolCallID] + " = " + text + "\n"
		default:
			lines += "The tool " + m.ToolName + " says: " + text + "\n"
		}
	}
	text := strings.TrimSpace(lines)
	if text != "" && req.ToolChoice == core.ToolChoiceRequired && len(req.Tools) > 0 { // one more, which is the client's
		return "", []core.ToolCall{{ID: callID(req, 0), Name: req.Tools[len(req.Tools)-1].Name, Arguments: "{}"}}
	}
	if text == "" {
		if calls := chosenCalls(req, callTools(req, question)); len(calls) > 0 {
			return "", calls
		}
		text = quoteAbout(question, summary, said)
	}
	if !answered && summary == "" {
		text = introduction + text
	}
	return text, nil
}

// readMessages returns what the user wrote, and whether there was an answer.
func readMessages(messages []llm.Message) (earlier, last string, answered bool) {
	for _, m := range messages {
		switch {
		case m.Role == core.RoleAssistant && m.Content != "":
			answered = true
		case m.Role == core.RoleUser && !strings.HasPrefix(m.Content, notesTitle):
			earlier += last + "\n"
			last = strings.TrimSpace(attachment.ReplaceAllString(m.Content, ""))
		}
	}
	return earlier, last, answered
}

// quoteAbout answers with the newest sentence that has the most words of the question.
func quoteAbout(question, summary, said string) string {
	if !asks.MatchString(question) {
		return noted + abilities
	}
	wanted := word.FindAllString(fillers.ReplaceAllString(strings.ToLower(question), " "), maxWords)
	most, answer := 1, noAnswer+abilities
	for _, source := range [][2]string{{"The summary of our conversation says:", summary}, {"You wrote:", said}} {
		for _, sentence := range sentencesOf(source[1]) {
			n, have := 0, strings.ToLower(sentence)
			for _, w := range wanted {
				n += strings.Count(have, strings.TrimSuffix(w, "s"))
			}
			if n >= most && !asks.MatchString(sentence) {
				most, answer = n, source[0]+" “"+sentence+"”"
			}
		}
	}
	return answer
}

// sentencesOf returns the sentences of a text, without headings, tags and list marks.
func sentencesOf(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(strings.TrimSpace(line), "-* ")
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "<") || line == prompttext.Ellipsis {
			continue
		}
		for _, s := range prompttext.Sentences(line) {
			out = append(out, prompttext.Line(s, maxLine))
		}
	}
	return out
}

// callTools returns calls of the tools that are offered and help with a message. Their ids
// are those of no other call in the conversation.
func callTools(req llm.Request, text string) []core.ToolCall {
	var calls []core.ToolCall
	// Expressions are calculated, dates are not.
	plain := strings.NewReplacer("−", "-", "×", "*", "÷", "/", " x ", " * ", " times ", " * ", " plus ", " + ", " minus ", " - ", " divided by ", " / ").Replace(text)
	plain = percentOf.ReplaceAllString(thousands.ReplaceAllString(plain, "$1$2"), "$1/100*$2")
	var out []string
	for _, e := range expression.FindAllString(plain, 5) {
		if e == strings.Trim(plain, " =?") || asksValue.MatchString(plain) && strings.Count(e, "-") < 2 {
			out = append(out, fmt.Sprintf(`{"expression":%q}`, e)) // digits and signs
		}
	}
	arguments := map[string][]string{"calculator": out}
	if asksTime.MatchString(text) {
		arguments["current_time"] = []string{"{}"}
	}
	for _, tool := range req.Tools {
		// Any tool can be tried: its name, then the arguments as a JSON object.
		if _, after, named := strings.Cut(text, tool.Name+" {"); named {
			var given json.RawMessage
			if json.NewDecoder(strings.NewReader("{"+after)).Decode(&given) == nil {
				arguments[tool.Name] = []string{string(given)}
			}
		}
		for _, a := range arguments[tool.Name] {
			calls = append(calls, core.ToolCall{ID: callID(req, len(calls)), Name: tool.Name, Arguments: a})
		}
	}
	return calls
}

// callID returns the id of the call of that number.
func callID(req llm.Request, number int) string {
	id := fnv.New64a()
	for _, m := range req.Messages {
		fmt.Fprintf(id, "%s\n%s\n", m.Role, m.Content)
	}
	return fmt.Sprintf("demo_%x_%d", id.Sum64(), number)
}

// chosenCalls returns those of the calls that the request allows, or one that it requires.
func chosenCalls(req llm.Request, calls []core.ToolCall) []core.ToolCall {
	if req.ToolChoice == core.ToolChoiceNone {
		return nil
	}
	tool := req.ToolChoice.Tool()
	if tool != "" {
		calls = slices.DeleteFunc(calls, func(c core.ToolCall) bool { return c.Name != tool })
	}
	if len(calls) == 0 && req.ToolChoice.Forced() && len(req.Tools) > 0 {
		calls = []core.ToolCall{{ID: callID(req, 0), Name: cmp.Or(tool, req.Tools[0].Name), Arguments: "{}"}}
	}
	if p := req.ParallelToolCalls; p != nil && !*p {
		calls = calls[:min(len(calls), 1)]
	}
	return calls
}
