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

// Extractive is the strategy without a model (rung 5 of the ladder): the first
// goal, the beginning of each user message, and the ledger. An earlier summary is
// folded in, whoever wrote it. It always succeeds, is always within the limit and,
// where Replaces leaves room for anything, smaller than that. Safe for concurrent
// use.
type Extractive struct{ count counter }

// NewExtractive returns the strategy.
func NewExtractive(count counter) *Extractive { return &Extractive{count: count} }

// Name is StrategyExtractive.
func (*Extractive) Name() string { return StrategyExtractive }

// The headings of an extractive summary. Stored summaries are read back by them.
const (
	goalHeading    = "## Goal"
	earlierHeading = "## Earlier Summary"
	askedHeading   = "## User Messages"
)

const (
	goalBytes  = 600
	askedBytes = 240 // of the beginning of a user message
	askedLines = 1_000
	withoutLLM = "(Extracted by a program, without a language model.)"
)

// notes is what an extractive summary is made of.
type notes struct {
	goal    string
	earlier string   // what a summary said that was not extracted
	asked   []string // a line for each user message, oldest first
	more    int      // user messages that earlier summaries could not show
	ledger  *ledger
	covers  string // which messages were added: what can be said in any case
}

// Summarize returns the summary. It looks at neither ctx nor the clock and
// returns no error.
func (e *Extractive) Summarize(_ context.Context, req Request) (Result, error) {
	limit := req.Limit
	if req.Replaces > 0 {
		limit = min(limit, req.Replaces-1)
	}
	n := e.read(req.Previous)
	n.gather(req.Messages)
	content := n.write(e.count, max(limit, 0))
	return Result{Content: content, Tokens: e.count.Text(content), Strategy: StrategyExtractive}, nil
}

// read takes an earlier summary apart.
func (e *Extractive) read(previous string) *notes {
	rest, l := splitLedger(strings.ToValidUTF8(previous, "\uFFFD"))
	n := &notes{ledger: l}
	var goal, earlier strings.Builder
	heading, ours := "", []string{withoutLLM, goalHeading, askedHeading, earlierHeading, summaryHeading, cut.Ellipsis}
	for line := range strings.Lines(rest) {
		bare := strings.TrimSpace(line)
		if strings.HasPrefix(bare, "## ") {
			heading = bare
		}
		switch {
		case slices.Contains(ours, bare):
		case heading == goalHeading:
			goal.WriteString(bare + "\n")
		case heading == askedHeading && n.readAsked(bare):
		default:
			earlier.WriteString(demote(line))
		}
	}
	n.goal = strings.TrimSpace(goal.String())
	n.earlier = strings.TrimSpace(earlier.String())
	return n
}

// demote makes a heading one that stands under ours.
func demote(line string) string {
	if strings.HasPrefix(line, "## ") || strings.HasPrefix(line, "# ") {
		return "### " + strings.TrimLeft(line, "# ")
	}
	return line
}

// readAsked reads a line of the user messages, and reports whether it was one.
func (n *notes) readAsked(line string) bool {
	if more, ok := parseMore(line); ok {
		n.more += more
		return true
	}
	if strings.HasPrefix(line, "- ") {
		n.asked = append(n.asked, cut.Line(line, 2*askedBytes))
		return true
	}
	return false
}

// gather adds the messages.
func (n *notes) gather(messages []core.Message) {
	n.ledger.extract(messages)
	for _, m := range messages {
		text := spoken(m)
		if m.Role != core.RoleUser || text == "" {
			continue
		}
		text = strings.ToValidUTF8(text, "\uFFFD")
		if n.goal == "" {
			n.goal = cut.Line(text, goalBytes)
		}
		n.asked = append(n.asked, fmt.Sprintf("- %s [%s]", cut.Line(text, askedBytes), ref(m)))
	}
	if over := len(n.asked) - askedLines; over > 0 {
		n.asked, n.more = n.asked[over:], n.more+over
	}
	if len(messages) > 0 {
		n.covers = fmt.Sprintf("%d messages, [%s] to [%s].", len(messages), ref(messages[0]), ref(messages[len(messages)-1]))
	}
}

// write renders the notes in at most limit tokens. Each part has a share; what a
// part does not use, the user's messages get, newest first.
func (n *notes) write(count counter, limit int) string {
	for room := limit; room >= 2*MinLimit; room -= max(limit/16, 1) {
		if out := n.render(count, room); out != "" && count.Text(out) <= limit {
			return out
		}
	}
	// Hardly any room, or hardly anything to say: one line.
	return cut.Head(count, cmp.Or(n.goal, n.earlier, n.ledger.render(count, limit), n.covers), limit)
}

// render writes all parts; they have about room tokens together.
func (n *notes) render(count counter, room int) string {
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
	add(goalHeading, cut.Head(count, n.goal, total/4))
	if total > 4*MinLimit {
		add(earlierHeading, cut.Oldest(count, n.earlier, total/3))
	}
	facts := n.ledger.render(count, ledgerRoom(total))
	add(askedHeading, newestLines(count, n.asked, n.more, room-count.Text(facts)-count.Text(askedHeading)-joinTokens))
	add("", facts)
	if len(parts) == 0 || len(parts) == 1 && parts[0] == withoutLLM {
		add("", n.covers)
	}
	return strings.Join(parts, "\n\n")
}

// newestLines returns the newest lines that fit, oldest first, and how many did not;
// more did not fit before.
func newestLines(count counter, lines []string, more, room int) string {
	room -= moreTokens
	first := len(lines)
	for first > 0 {
		cost := count.Text(lines[first-1]) + 1
		if cost > room {
			break
		}
		room -= cost
		first--
	}
	if first == len(lines) {
		return ""
	}
	shown := lines[first:]
	if more += first; more > 0 {
		shown = append([]string{fmt.Sprintf("+%d more", more)}, shown...)
	}
	return strings.Join(shown, "\n")
}
