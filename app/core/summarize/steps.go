package summarize

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/cut"
)

// Steps is the strategy for a tool loop without a model (REQUIREMENTS L3): a line for
// each call with the beginning of its result, and the ledger. Earlier notes are folded
// in, whoever wrote them. It always succeeds, is always within the limit and, where
// Replaces leaves room for anything, smaller than that. Safe for concurrent use.
type Steps struct{ count counter }

// NewSteps returns the strategy.
func NewSteps(count counter) *Steps { return &Steps{count: count} }

// Name is StrategySteps.
func (*Steps) Name() string { return StrategySteps }

// The headings of notes made of steps. Stored notes are read back by them.
const (
	stepsHeading        = "## Steps"
	earlierNotesHeading = "## Earlier Notes"
)

const (
	argumentBytes = 160 // of a step's arguments
	resultBytes   = 200 // of the beginning of its result
)

// steps is what the notes are made of.
type steps struct {
	earlier string   // what earlier notes said that were not steps
	lines   []string // a line for each step, oldest first
	more    int      // steps that earlier notes could not show
	ledger  *ledger
	covers  string // which messages were added: what can be said in any case
}

// Summarize returns the notes. It looks at neither ctx nor the clock and returns no
// error.
func (s *Steps) Summarize(_ context.Context, req Request) (Result, error) {
	limit := req.Limit
	if req.Replaces > 0 {
		limit = min(limit, req.Replaces-1)
	}
	n := readSteps(req.Previous)
	n.gather(req.Messages)
	content := n.write(s.count, max(limit, 0))
	return Result{Content: content, Tokens: s.count.Text(content), Strategy: StrategySteps}, nil
}

// readSteps takes earlier notes apart.
func readSteps(previous string) *steps {
	rest, l := splitLedger(strings.ToValidUTF8(previous, "\uFFFD"))
	n := &steps{ledger: l}
	var earlier strings.Builder
	heading, ours := "", []string{withoutLLM, stepsHeading, earlierNotesHeading, cut.Ellipsis}
	for line := range strings.Lines(rest) {
		bare := strings.TrimSpace(line)
		if strings.HasPrefix(bare, "## ") {
			heading = bare
		}
		more, counted := parseMore(bare)
		switch {
		case slices.Contains(ours, bare):
		case heading == stepsHeading && counted:
			n.more += more
		case heading == stepsHeading && strings.HasPrefix(bare, "- "):
			n.lines = append(n.lines, bare)
		default:
			earlier.WriteString(demote(line))
		}
	}
	n.earlier = strings.TrimSpace(earlier.String())
	return n
}

// gather adds the messages. What the user asked stands in the prompt anyway.
func (n *steps) gather(messages []core.Message) {
	n.ledger.extract(messages)
	for i, m := range messages {
		if m.Role != core.RoleAssistant {
			continue
		}
		if text := spoken(m); text != "" {
			n.add("said: "+cut.Line(text, resultBytes), m)
		}
		end := i + 1
		for end < len(messages) && messages[end].Role == core.RoleTool {
			end++
		}
		for _, c := range m.ToolCalls {
			n.add(stepLine(c, messages[i+1:end]), m)
		}
	}
	if over := len(n.lines) - askedLines; over > 0 {
		n.lines, n.more = n.lines[over:], n.more+over
	}
	if len(messages) > 0 {
		n.covers = fmt.Sprintf("%d messages, [%s] to [%s].", len(messages), ref(messages[0]), ref(messages[len(messages)-1]))
	}
}

func (n *steps) add(line string, m core.Message) {
	n.lines = append(n.lines, strings.ToValidUTF8(fmt.Sprintf("- %s [%s]", line, ref(m)), "\uFFFD"))
}

// stepLine says what a call did, in one line.
func stepLine(c core.ToolCall, results []core.Message) string {
	line := fmt.Sprintf("%s(%s)", word(c.Name), cut.Line(c.Arguments, argumentBytes))
	i := slices.IndexFunc(results, func(m core.Message) bool { return m.ToolCallID == c.ID })
	if i < 0 {
		return line + " → no result"
	}
	m := results[i]
	if m.Status == core.MessageFailed {
		line += " → failed"
	}
	if text := cut.Line(spoken(m), resultBytes); text != "" {
		line += " → " + text
	}
	return line
}

// write renders the notes in at most limit tokens. Each part has a share; what a part
// does not use the steps get, newest first.
func (n *steps) write(count counter, limit int) string {
	for room := limit; room >= 2*MinLimit; room -= max(limit/16, 1) {
		if out := n.render(count, room); out != "" && count.Text(out) <= limit {
			return out
		}
	}
	last := ""
	if len(n.lines) > 0 {
		last = n.lines[len(n.lines)-1]
	}
	return cut.Head(count, cmp.Or(last, n.earlier, n.ledger.render(count, limit), n.covers), limit)
}

// render writes all parts; they have about room tokens together.
func (n *steps) render(count counter, room int) string {
	total := room
	var parts []string
	add := func(heading, body string) {
		if body != "" {
			part := strings.TrimSpace(heading + "\n" + body)
			parts = append(parts, part)
			room -= count.Text(part) + 2
		}
	}
	if total > 8*MinLimit {
		add("", withoutLLM)
	}
	if total > 4*MinLimit {
		add(earlierNotesHeading, cut.Oldest(count, n.earlier, total/3))
	}
	facts := n.ledger.render(count, ledgerRoom(total))
	add(stepsHeading, newestLines(count, n.lines, n.more, room-count.Text(facts)-count.Text(stepsHeading)-joinTokens))
	add("", facts)
	if len(parts) == 0 || len(parts) == 1 && parts[0] == withoutLLM {
		add("", n.covers)
	}
	return strings.Join(parts, "\n\n")
}
