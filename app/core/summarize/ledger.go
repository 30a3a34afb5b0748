package summarize

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bobbin/app/core/cut"
)

// kind is a section of the ledger.
type kind int

const (
	files kind = iota
	commands
	problems
	urls
	kinds // how many there are
)

// heading returns the line above the kind's entries (C3). Stored summaries are
// read back by it.
func (k kind) heading() string {
	return [kinds]string{"## Files Referenced", "## Commands Executed", "## Errors Encountered", "## URLs"}[k]
}

const (
	// ledgerTokens is the ledger's own budget inside the limit (CONTEXT § 6).
	ledgerTokens = 600
	// ledgerEntries bounds a kind's entries in memory; more could never be shown.
	ledgerEntries = 1_000
	entryBytes    = 240 // of one entry
	// leastEntry is the fewest tokens of an entry's line with its reference.
	leastEntry = 6
	// moreTokens is kept free for a kind's "+12 more".
	moreTokens = 8
)

// ledgerRoom returns the tokens that the ledger may have in a summary of at most limit.
// All strategies give it the same, so that none throws away what another kept.
func ledgerRoom(limit int) int { return min(ledgerTokens, limit*2/5) }

// entry is one fact and the message that spoke of it last.
type entry struct {
	text string
	note string // "exit 1"; empty = nothing more is known
	ref  string // empty = not known
	at   int    // order of the last mention
}

func (e entry) line() string {
	line := "- " + e.text
	if e.note != "" {
		line += " → " + e.note
	}
	if e.ref != "" {
		line += " [" + e.ref + "]"
	}
	return line
}

// ledger is what code knows of a conversation: each fact once, newest mention
// last. What does not fit is counted.
type ledger struct {
	entries [kinds]map[string]entry
	bases   map[string]bool // the last parts of the paths among the files
	more    [kinds]int      // entries that earlier summaries could not show
	clock   int
}

func newLedger() *ledger {
	l := &ledger{bases: map[string]bool{}}
	for k := range kinds {
		l.entries[k] = map[string]entry{}
	}
	return l
}

// add records a mention. A known fact moves to the end and keeps its note unless
// there is a new one.
func (l *ledger) add(k kind, text, note, ref string) {
	text = cut.Line(text, entryBytes)
	if text == "" {
		return
	}
	if k == files && !l.fresh(text) {
		return
	}
	known := l.entries[k][text]
	l.clock++
	l.entries[k][text] = entry{text: text, note: cmp.Or(note, known.note), ref: cmp.Or(ref, known.ref), at: l.clock}
	if len(l.entries[k]) > 2*ledgerEntries {
		l.forget(k)
	}
}

// fresh reports whether a file is to be recorded: the bare name of one whose path is
// known says nothing new. A path takes the place of the bare name.
func (l *ledger) fresh(path string) bool {
	n := strings.LastIndexAny(path, `/\`)
	if n < 0 {
		return !l.bases[path]
	}
	l.bases[path[n+1:]] = true
	delete(l.entries[files], path[n+1:])
	return true
}

// forget drops the older half of a kind. It runs once in ledgerEntries additions,
// so additions stay cheap.
func (l *ledger) forget(k kind) {
	newest := l.newest(k)
	for _, e := range newest[ledgerEntries:] {
		delete(l.entries[k], e.text)
	}
	l.more[k] += len(newest) - ledgerEntries
}

// newest returns the entries of a kind, the last mentioned first.
func (l *ledger) newest(k kind) []entry {
	out := make([]entry, 0, len(l.entries[k]))
	for _, e := range l.entries[k] {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b entry) int { return b.at - a.at })
	return out
}

func (l *ledger) empty() bool {
	for k := range kinds {
		if len(l.entries[k]) > 0 || l.more[k] > 0 {
			return false
		}
	}
	return true
}

// render writes the ledger in at most budget tokens: of each kind the entries
// mentioned last, in the order of their mention, and "+12 more" for the rest.
// Empty = nothing to say, or no room for it.
func (l *ledger) render(count counter, budget int) string {
	for room := budget; room > 0 && !l.empty(); room -= max(budget/16, 1) {
		out := l.write(l.choose(count, room))
		if count.Text(out) <= budget {
			return out
		}
	}
	return ""
}

// choose returns the newest entries of each kind that fit the room together; the
// kinds take turns, so that none crowds out the others.
func (l *ledger) choose(count counter, room int) [kinds][]entry {
	var waiting, chosen [kinds][]entry
	for k := range kinds {
		cost := count.Text(k.heading()) + moreTokens
		if len(l.entries[k]) == 0 || cost+leastEntry > room {
			continue
		}
		waiting[k], room = l.newest(k), room-cost
	}
	for turn := true; turn; {
		turn = false
		for k := range kinds {
			if len(waiting[k]) == 0 || room < leastEntry {
				continue
			}
			e := waiting[k][0]
			waiting[k] = waiting[k][1:]
			if cost := count.Text(e.line()) + 1; cost <= room {
				chosen[k], room = append(chosen[k], e), room-cost
			}
			turn = true
		}
	}
	return chosen
}

// write renders the chosen entries, given newest first.
func (l *ledger) write(chosen [kinds][]entry) string {
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
			b.WriteString("\n" + e.line())
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

// disowned returns what a model wrote so that none of it is taken for a ledger: nobody
// checked it.
func disowned(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "## ") && ledgerKind(strings.TrimSpace(line)) != kinds {
			line = "#" + line
		}
		b.WriteString(line)
	}
	return b.String()
}

// splitLedger takes a ledger out of a summary: it returns what else the summary
// says, and the entries of all its ledger sections, of those that a model wrote in
// the place of code, too.
func splitLedger(summary string) (rest string, l *ledger) {
	l = newLedger()
	var b strings.Builder
	current := kinds // not in a ledger section
	for line := range strings.Lines(summary) {
		bare := strings.TrimSpace(line)
		if cut.IsHeading(bare) && !strings.HasPrefix(bare, "### ") {
			current = ledgerKind(bare)
		}
		if current == kinds {
			b.WriteString(line)
			continue
		}
		l.parse(current, bare)
	}
	return strings.TrimSpace(b.String()), l
}

// ledgerKind returns the kind that the heading stands for; kinds = none.
func ledgerKind(heading string) kind {
	name := strings.ToLower(strings.Trim(heading, "#*: "))
	for k := range kinds {
		if name == strings.ToLower(strings.TrimPrefix(k.heading(), "## ")) {
			return k
		}
	}
	return kinds
}

// parse reads one line of a ledger section.
func (l *ledger) parse(k kind, line string) {
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
	l.add(k, text, note, ref)
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
