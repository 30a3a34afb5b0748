package summarize

import (
	"context"
	"fmt"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
)

// Extract is a strategy without a model (rung 5 of the ladder): sections of quoted
// lines, the text of an earlier summary, and the ledger. It always succeeds, and its
// result is always within the limit and, where Replaces leaves room for anything, smaller
// than that. Safe for concurrent use.
type Extract struct {
	count    core.TextCounter
	name     string
	sections func() []section // empty ones, in the order of the summary
	read     func(n *notes, messages []core.Message)
}

// Name returns StrategyExtractive or StrategySteps.
func (e *Extract) Name() string { return e.name }

// withoutLLM says who wrote an extract.
const withoutLLM = "(Extracted by a program, without a language model.)"

// Summarize returns the extract. It ignores ctx and returns no error.
func (e *Extract) Summarize(_ context.Context, req Request) (Result, error) {
	limit := req.Limit
	if req.Replaces > 0 {
		limit = min(limit, req.Replaces-1)
	}
	n := &notes{sections: e.sections()}
	n.parsePrevious(req.Previous)
	messages := req.withoutInstructions()
	n.ledger.extractFacts(messages)
	n.ledger.dropInstructions(req.Instructions)
	e.read(n, messages)
	content := n.renderWithin(e.count, max(limit, 0))
	return Result{Content: content, Tokens: e.count.Text(content), Strategy: e.name}, nil
}

// notes are the parts of an extract.
type notes struct {
	sections []section
	ledger   *ledger
}

// sectionOf returns the section with the heading; nil = there is none.
func (n *notes) sectionOf(heading string) *section {
	for i := range n.sections {
		if n.sections[i].heading == heading {
			return &n.sections[i]
		}
	}
	return nil
}

// earlierSection returns the section for text of an earlier summary that belongs to no
// other section.
func (n *notes) earlierSection() *section {
	for i := range n.sections {
		if n.sections[i].kind == runningText {
			return &n.sections[i]
		}
	}
	return nil
}

// parsePrevious divides an earlier summary among the sections and the ledger.
func (n *notes) parsePrevious(previous string) {
	rest, l := splitLedger(strings.ToValidUTF8(previous, "\uFFFD"))
	n.ledger = l
	earlier := n.earlierSection()
	var other strings.Builder
	var current *section
	for line := range strings.Lines(rest) {
		bare := strings.TrimSpace(line)
		if strings.HasPrefix(bare, "## ") {
			current = n.sectionOf(bare)
		}
		switch {
		case bare == withoutLLM, bare == summaryHeading, bare == prompttext.Ellipsis, bare == earlier.heading:
		case current != nil && (bare == current.heading || current.parseLine(bare)):
		default:
			other.WriteString(demoteHeading(line))
		}
	}
	earlier.text = strings.TrimSpace(other.String())
}

// demoteHeading returns a heading one level below ours; other lines unchanged.
func demoteHeading(line string) string {
	if strings.HasPrefix(line, "## ") || strings.HasPrefix(line, "# ") {
		return "### " + strings.TrimLeft(line, "# ")
	}
	return line
}

// renderWithin renders the notes in at most limit tokens.
func (n *notes) renderWithin(count core.TextCounter, limit int) string {
	measureSections(count, n.sections)
	for room := limit; room >= 2*MinLimit; room -= max(limit/32, 1) {
		if out := n.renderParts(count, room); out != "" && count.Text(out) <= limit {
			return out
		}
	}
	return prompttext.Head(count, n.briefText(count, limit), limit)
}

// briefText returns the text for a limit that has no room for sections.
func (n *notes) briefText(count core.TextCounter, limit int) string {
	for _, s := range n.sections {
		if text := s.newestText(); text != "" {
			return text
		}
	}
	return n.ledger.render(count, limit)
}

// renderParts renders all parts in about room tokens. Each part has its share; what it
// does not use goes to the others.
func (n *notes) renderParts(count core.TextCounter, room int) string {
	var parts []string
	if room > 8*MinLimit {
		parts = append(parts, withoutLLM)
		room -= count.Text(withoutLLM) + 2
	}
	facts := n.ledger.render(count, ledgerRoom(room))
	room -= count.Text(facts) + 2
	said := map[string]bool{}
	for i, granted := range divideRoom(n.sections, room) {
		if out := n.sections[i].render(count, granted, said); out != "" {
			parts = append(parts, out)
		}
	}
	if facts != "" {
		parts = append(parts, facts)
	}
	return strings.Join(parts, "\n\n")
}

// describeRange returns which messages were added, for messages without any text.
func describeRange(messages []core.Message) string {
	if len(messages) == 0 {
		return ""
	}
	return fmt.Sprintf("%d messages, [%s] to [%s].", len(messages), messageRef(messages[0]), messageRef(messages[len(messages)-1]))
}
