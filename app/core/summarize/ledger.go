package summarize

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
)

// kind is a section of the ledger.
type kind int

const (
	wishes kind = iota // of the user, in the user's words
	files
	commands
	problems
	urls
	kinds // how many there are
)

// heading returns the line above the kind's entries. Stored summaries are parsed by it.
func (k kind) heading() string {
	return [kinds]string{"## Standing Wishes", "## Files Referenced", "## Commands Executed", "## Errors Encountered", "## URLs"}[k]
}

const (
	// ledgerTokens bounds the ledger inside the limit of the summary.
	ledgerTokens = 600
	// ledgerEntries bounds a kind's entries in memory; no summary can show more.
	ledgerEntries = 1_000
	entryBytes    = 240 // of one entry
	// minEntryTokens is the min size of an entry's line with its reference.
	minEntryTokens = 6
	// moreTokens is reserved for a kind's "+12 more".
	moreTokens = 8
)

// ledgerRoom returns how many tokens the ledger may have in a summary of at most limit.
// It is the same for all strategies, so that none drops what another kept.
func ledgerRoom(limit int) int { return min(ledgerTokens, limit*2/5) }

// entry is one fact and the message that mentioned it last.
type entry struct {
	text   string
	source core.Role // empty = not known
	note   string    // such as "exit 1"; empty = none
	ref    string    // of the message; empty = not known
	at     int       // order of the last mention
}

// renderLine returns the line of the entry. Text that may be a sentence is quoted with its
// source: it is evidence, not an order. So is an address that only a tool named.
func (e entry) renderLine(k kind) string {
	line := "- " + e.text
	if k == wishes || k == problems || k == urls && e.source == core.RoleTool {
		line = "- " + quoteSource(e.source, e.text)
	}
	if e.note != "" {
		line += " → " + e.note
	}
	if e.ref != "" {
		line += " [" + e.ref + "]"
	}
	return line
}

// ledger holds the facts that code extracted from a conversation: each fact once, newest
// mention last. Facts that do not fit are counted.
type ledger struct {
	entries [kinds]map[string]entry
	bases   map[string]bool // the last parts of the paths among the files
	more    [kinds]int      // entries that earlier summaries did not show
	clock   int
}

func newLedger() *ledger {
	l := &ledger{bases: map[string]bool{}}
	for k := range kinds {
		l.entries[k] = map[string]entry{}
	}
	return l
}

// quoteSource returns the text as a quotation that names its source, if it is known.
func quoteSource(source core.Role, text string) string {
	text = `"` + text + `"`
	if source != "" {
		text = string(source) + " said: " + text
	}
	return text
}

// quotation matches what quoteSource returns.
var quotation = regexp.MustCompile(`^(?:(user|assistant|tool) said: )?"(.*)"$`)

// addEntry records a mention. A known fact moves to the end and keeps its note unless
// there is a new one.
func (l *ledger) addEntry(k kind, e entry) {
	e.text = prompttext.Line(prompttext.Harmless(e.text), entryBytes)
	if e.text == "" || k == files && !l.isNewFile(e.text) {
		return
	}
	known := l.entries[k][e.text]
	l.clock++
	e.note, e.ref, e.source, e.at = cmp.Or(e.note, known.note), cmp.Or(e.ref, known.ref), cmp.Or(e.source, known.source), l.clock
	l.entries[k][e.text] = e
	if len(l.entries[k]) > 2*ledgerEntries {
		l.dropOldest(k)
	}
}

// isNewFile reports whether to record a file: not the bare name of a known path. A path
// replaces the bare name.
func (l *ledger) isNewFile(path string) bool {
	n := strings.LastIndexAny(path, `/\`)
	if n < 0 {
		return !l.bases[path]
	}
	l.bases[path[n+1:]] = true
	delete(l.entries[files], path[n+1:])
	return true
}

// dropOldest drops the older half of a kind. It runs once per ledgerEntries additions, so
// additions stay cheap.
func (l *ledger) dropOldest(k kind) {
	newest := l.newestEntries(k)
	for _, e := range newest[ledgerEntries:] {
		delete(l.entries[k], e.text)
	}
	l.more[k] += len(newest) - ledgerEntries
}

// newestEntries returns the entries of a kind, the last mentioned first.
func (l *ledger) newestEntries(k kind) []entry {
	out := make([]entry, 0, len(l.entries[k]))
	for _, e := range l.entries[k] {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b entry) int { return b.at - a.at })
	return out
}

func (l *ledger) isEmpty() bool {
	for k := range kinds {
		if len(l.entries[k]) > 0 || l.more[k] > 0 {
			return false
		}
	}
	return true
}

// render renders the ledger in at most budget tokens: of each kind the entries
// mentioned last, in the order of their mention, and "+12 more" for the rest.
// Empty = no entries, or no room for them.
func (l *ledger) render(count core.TextCounter, budget int) string {
	for room := budget; room > 0 && !l.isEmpty(); room -= max(budget/16, 1) {
		out := l.renderChosen(l.chooseEntries(count, room))
		if count.Text(out) <= budget {
			return out
		}
	}
	return ""
}

// chooseEntries returns the newest entries of each kind that fit the room together; the
// kinds take turns, so that none crowds out the others.
func (l *ledger) chooseEntries(count core.TextCounter, room int) [kinds][]entry {
	var waiting, chosen [kinds][]entry
	for k := range kinds {
		cost := count.Text(k.heading()) + moreTokens
		if len(l.entries[k]) == 0 || cost+minEntryTokens > room {
			continue
		}
		waiting[k], room = l.newestEntries(k), room-cost
	}
	for turn := true; turn; {
		turn = false
		for k := range kinds {
			if len(waiting[k]) == 0 || room < minEntryTokens {
				continue
			}
			e := waiting[k][0]
			waiting[k] = waiting[k][1:]
			if cost := count.Text(e.renderLine(k)) + 1; cost <= room {
				chosen[k], room = append(chosen[k], e), room-cost
			}
			turn = true
		}
	}
	return chosen
}

// renderChosen renders the chosen entries, given newest first.
func (l *ledger) renderChosen(chosen [kinds][]entry) string {
	var b strings.Builder
	for k := range kinds {
		if len(chosen[k]) == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(k.heading())
		for _, e := range slices.Backward(chosen[k]) {
			b.WriteString("\n" + e.renderLine(k))
		}
		if more := len(l.entries[k]) - len(chosen[k]) + l.more[k]; more > 0 {
			fmt.Fprintf(&b, "\n+%d more", more)
		}
	}
	return b.String()
}

var (
	entryRef  = regexp.MustCompile(`^(.*) \[([0-9A-Za-z_-]{1,24})\]$`)
	entryNote = regexp.MustCompile(`^(.*) → (exit -?\d+)$`)
	moreLine  = regexp.MustCompile(`^\+(\d{1,9}) more$`)
)

// demoteLedgerHeadings returns a model's text without the headings of a ledger: only code
// writes ledgers.
func demoteLedgerHeadings(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "## ") && ledgerKind(strings.TrimSpace(line)) != kinds {
			line = "#" + line
		}
		b.WriteString(line)
	}
	return b.String()
}

// splitLedger separates a summary from its ledger: it returns the other text, and the
// entries of all ledger sections, including those that a model wrote instead of code.
func splitLedger(summary string) (rest string, l *ledger) {
	l = newLedger()
	var b strings.Builder
	current := kinds // not in a ledger section
	for line := range strings.Lines(summary) {
		bare := strings.TrimSpace(line)
		if prompttext.IsHeading(bare) && !strings.HasPrefix(bare, "### ") {
			current = ledgerKind(bare)
		}
		if current == kinds {
			b.WriteString(line)
			continue
		}
		l.parseEntry(current, bare)
	}
	return strings.TrimSpace(b.String()), l
}

// ledgerKind returns the kind of a heading; kinds = none.
func ledgerKind(heading string) kind {
	name := strings.ToLower(strings.Trim(heading, "#*: "))
	for k := range kinds {
		if name == strings.ToLower(strings.TrimPrefix(k.heading(), "## ")) {
			return k
		}
	}
	return kinds
}

// parseEntry reads one line of a ledger section.
func (l *ledger) parseEntry(k kind, line string) {
	if more, ok := parseMore(line); ok {
		l.more[k] += more
		return
	}
	text, ok := strings.CutPrefix(line, "- ")
	if !ok {
		return
	}
	var ref, note string
	if m := entryRef.FindStringSubmatch(text); m != nil {
		text, ref = m[1], m[2]
	}
	if m := entryNote.FindStringSubmatch(text); m != nil {
		text, note = m[1], m[2]
	}
	var source core.Role
	if m := quotation.FindStringSubmatch(text); m != nil {
		source, text = core.Role(m[1]), m[2]
	}
	l.addEntry(k, entry{text: text, source: source, note: note, ref: ref})
}

// parseMore reads "+12 more".
func parseMore(line string) (int, bool) {
	m := moreLine.FindStringSubmatch(line)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}
