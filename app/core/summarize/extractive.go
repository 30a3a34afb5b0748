package summarize

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
)

// Extract is a strategy without a model (rung 5 of the ladder): sections of quoted lines, the
// text of an earlier summary, and the facts. It always succeeds, and its result is always within
// the limit and, where Replaces leaves room for anything, smaller than that. Safe for concurrent
// use.
type Extract struct {
	count    core.TextCounter
	name     string
	sections func() outline // empty ones, in the order of the summary
	read     func(o outline, messages []core.Message)
}

// NewExtractive returns the strategy for conversations: the newest messages of the users, the
// first telling sentence of the newest answers, and the facts.
func NewExtractive(count core.TextCounter) *Extract {
	return &Extract{count: count, name: StrategyExtractive, read: readConversation, sections: func() outline {
		return append(outline{messageSection(userHeading, 5), messageSection(assistantHeading, 4), {heading: mentionsHeading, share: 20, rank: rankByWords}}, factSections()...)
	}}
}

// NewSteps returns the strategy for a tool loop: a line for each call with its result, and the facts.
func NewSteps(count core.TextCounter) *Extract {
	return &Extract{count: count, name: StrategySteps, read: readSteps, sections: func() outline {
		return append(outline{{heading: stepsHeading, share: 9}}, factSections()...)
	}}
}

// Headings of extracts. Stored summaries are parsed by them.
const (
	earlierHeading   = "## Earlier Summary"
	assistantHeading = "Assistant Messages"
	mentionsHeading  = "Also Mentioned"
	stepsHeading     = "Steps"
)

// withoutLLM says who wrote an extract.
const withoutLLM = "(Extracted by a program, without a language model.)"

// Summarize returns the extract. It ignores ctx and returns no error.
func (e *Extract) Summarize(_ context.Context, req Request) (Result, error) {
	limit := req.Limit
	if req.Replaces > 0 {
		limit = min(limit, req.Replaces-1)
	}
	o := e.sections()
	earlier := o.parse(strings.NewReplacer(withoutLLM, "", earlierHeading+"\n", "", summaryHeading+"\n", "").Replace(strings.ToValidUTF8(req.Previous, "\uFFFD")))
	o.addFacts(req.Messages)
	e.read(o, req.quotable())
	o.dropInstructions(req.Instructions)
	content := e.write(o, earlier, max(limit, 0))
	if n := len(req.Messages); content == "" && n > 0 { // messages without any text
		which := fmt.Sprintf("%d messages, [%s] to [%s].", n, messageRef(req.Messages[0]), messageRef(req.Messages[n-1]))
		content = prompttext.Head(e.count, which, max(limit, 0))
	}
	return Result{Content: content, Tokens: e.count.Text(content), Strategy: e.name}, nil
}

// write returns the sections and the earlier summary in at most limit tokens. The earlier summary
// has two fifths, and what the sections do not use.
func (e *Extract) write(o outline, earlier string, limit int) string {
	room, mark := limit, ""
	if limit > 8*MinLimit {
		mark = withoutLLM + "\n\n"
		room -= e.count.Text(mark)
	}
	sections := o.render(e.count, room-min(room*2/5, e.count.Text(earlier)))
	if out := strings.TrimSpace(mark + join(e.count, earlierHeading, earlier, sections, room)); out != strings.TrimSpace(mark) && e.count.Text(out) <= limit {
		return out
	}
	for _, s := range o { // no room for sections
		if n := len(s.lines); n > 0 {
			return prompttext.Head(e.count, s.lines[n-1].text, limit)
		}
	}
	return prompttext.Head(e.count, earlier, limit)
}

// readConversation adds the messages of both sides.
func readConversation(o outline, messages []core.Message) {
	o.addUserMessages(messages)
	said, mentions := o.section(assistantHeading), o.section(mentionsHeading)
	var texts []string
	for _, m := range messages {
		texts = append(texts, core.Clip(spokenText(m), readBytes))
	}
	values := wordValues(texts)
	for i, m := range messages {
		if m.Role == core.RoleAssistant {
			said.add(tellingSentence(texts[i]), "", messageRef(m))
		}
		if m.Role == core.RoleAssistant || m.Role == core.RoleUser {
			mentions.add(tellingWords(texts[i], values), "", messageRef(m))
		}
	}
}

// addUserMessages adds what users wrote, in their own words.
func (o outline) addUserMessages(messages []core.Message) {
	said := o.section(userHeading)
	for _, m := range messages {
		if m.Role != core.RoleUser {
			continue
		}
		text := spokenText(m)
		if speaker := prompttext.SpeakerName(m); text != "" && speaker != "" {
			text = speaker + ": " + text
		}
		said.add(text, "", messageRef(m))
	}
}

const (
	readBytes    = 2_000 // of an answer, from its beginning
	tellingBytes = 30    // of a sentence that tells something
	quoteBytes   = 240   // of a line
	mentionBytes = 160   // of the words of a message
	minWords     = 3     // fewer mean nothing without their sentence
	minWordValue = 0.2
)

// tellingSentence returns the first sentence that is no question and long enough to tell something; empty = none.
func tellingSentence(text string) string {
	for line := range strings.Lines(core.Clip(text, readBytes)) {
		for _, sentence := range prompttext.Sentences(line) {
			if sentence = strings.TrimSpace(sentence); len(sentence) >= tellingBytes && !strings.HasSuffix(sentence, "?") {
				return prompttext.Line(sentence, quoteBytes)
			}
		}
	}
	return ""
}

// rankByWords ranks lines by what their words tell for their size.
func rankByWords(s *section) {
	var texts []string
	for _, l := range s.lines {
		texts = append(texts, l.text)
	}
	values := wordValues(texts)
	for i, l := range s.lines {
		s.lines[i].rank = 0
		for word := range strings.FieldsSeq(l.text) {
			s.lines[i].rank += values[bareWord(word)] / float64(l.tokens)
		}
	}
}

// wordValues returns how much the words tell: figures most, then names, and the less the more texts have a word.
func wordValues(texts []string) map[string]float64 {
	weights, counts := map[string]float64{}, map[string]float64{}
	for _, text := range texts {
		begins, known := true, map[string]bool{}
		for word := range strings.FieldsSeq(text) {
			bare, weight := bareWord(word), 1.0
			first, _ := utf8.DecodeRuneInString(strings.TrimLeft(word, wordMarks))
			switch {
			case strings.ContainsFunc(bare, unicode.IsDigit):
				weight = 2
			case unicode.IsUpper(first) && !begins:
				weight = 1.5
			case utf8.RuneCountInString(bare) <= 3:
				weight = 0
			}
			if weights[bare] = max(weights[bare], weight); !known[bare] {
				counts[bare]++
			}
			known[bare], begins = true, strings.ContainsAny(word[len(word)-1:], ".!?:")
		}
	}
	for word, n := range counts {
		weights[word] *= max(0, 1-1.6*math.Log(n)/math.Log(float64(len(texts)+1)))
	}
	return weights
}

const wordMarks = ".,!?;:\"()[]…“”"

func bareWord(word string) string { return strings.ToLower(strings.Trim(word, wordMarks)) }

// tellingWords returns the words of a text that tell something, in their order; empty = too few.
func tellingWords(text string, values map[string]float64) string {
	var kept []string
	size := 0
	for word := range strings.FieldsSeq(text) {
		if values[bareWord(word)] < minWordValue || size > mentionBytes {
			continue
		}
		kept = append(kept, strings.Trim(word, wordMarks))
		size += len(word) + 1
	}
	if len(kept) < minWords {
		return ""
	}
	return strings.Join(kept, " ")
}

// readSteps adds the calls, each with its result, and what the assistant said.
func readSteps(o outline, messages []core.Message) {
	steps := o.section(stepsHeading)
	for i, m := range messages {
		if m.Role != core.RoleAssistant {
			continue
		}
		if text := spokenText(m); text != "" {
			steps.add(`assistant said: "`+prompttext.Line(text, resultBytes)+`"`, "", messageRef(m))
		}
		end := i + 1
		for end < len(messages) && messages[end].Role == core.RoleTool {
			end++
		}
		for _, c := range m.ToolCalls {
			steps.add(stepLine(c, messages[i+1:end]), "", messageRef(m))
		}
	}
}

const (
	argumentBytes = 160 // of a step's arguments
	resultBytes   = 200 // of the beginning of its result
)

// stepLine describes a call and its result in one line.
func stepLine(c core.ToolCall, results []core.Message) string {
	line := fmt.Sprintf("%s(%s)", safeName(c.Name), prompttext.Line(c.Arguments, argumentBytes))
	i := slices.IndexFunc(results, func(m core.Message) bool { return m.ToolCallID == c.ID })
	if i < 0 {
		return line + " → no result"
	}
	if results[i].Status == core.MessageFailed {
		line += " → failed"
	}
	if text := prompttext.Line(spokenText(results[i]), resultBytes); text != "" {
		line += ` → "` + text + `"`
	}
	return line
}
