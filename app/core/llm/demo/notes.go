package demo

import (
	"regexp"
	"strings"
)

// The sections of a summary, in order.
const (
	sectionGoal      = "Goal"
	sectionFacts     = "Facts"
	sectionDecisions = "Decisions"
	sectionOpen      = "Done and open"
	sectionErrors    = "Errors and fixes"
)

func sections() []string {
	return []string{sectionGoal, sectionFacts, sectionDecisions, sectionOpen, sectionErrors}
}

// weight says what goes first when a summary is too long.
type weight int

const (
	weak   weight = iota // said in passing
	middle               // done, open, errors
	strong               // decisions, what is known of the user
	last                 // the goal
)

// note is a line of a summary.
type note struct {
	section string
	weight  weight
	text    string
	tokens  int
}

// notes is a summary in the making. Lines are in the order in which they were said.
type notes struct {
	count func(string) int
	lines []note
}

// The most characters of a line that is taken from a message, and from an earlier
// summary, where it is to stay as it is.
const (
	lineLength    = 240
	carriedLength = 1_000
)

// add adds a line, if it is not there yet.
func (n *notes) add(section, text string) {
	text = brief(strings.TrimLeft(text, "-*•# "), lineLength)
	n.addLine(section, weightOf(section, text), text)
}

func (n *notes) addLine(section string, w weight, text string) {
	if text == "" || text == "…" { // a mark of somebody else's cut
		return
	}
	for _, l := range n.lines {
		if strings.EqualFold(l.text, text) {
			return
		}
	}
	n.lines = append(n.lines, note{section, w, text, n.count("- " + text + "\n")})
}

// addSummary carries an earlier summary forward, its facts unchanged. Lines under
// headings of another writer become facts.
func (n *notes) addSummary(summary string) {
	section := sectionFacts
	for line := range strings.Lines(summary) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "#"); ok {
			section = sectionOf(strings.TrimSpace(strings.TrimLeft(heading, "#")))
			continue
		}
		text := brief(strings.TrimLeft(line, "-*• "), carriedLength)
		n.addLine(section, weightOf(section, text), text)
	}
}

func sectionOf(heading string) string {
	for _, s := range sections() {
		if strings.EqualFold(s, heading) {
			return s
		}
	}
	return sectionFacts
}

// weightOf weighs a line by what it says, so that it weighs the same when it is
// carried forward: else old remarks would drive out new ones.
func weightOf(section, text string) weight {
	switch {
	case section == sectionGoal, nameSaid.MatchString(text):
		return last
	case section == sectionOpen, section == sectionErrors:
		return middle
	case section == sectionDecisions, tellsFact(text):
		return strong
	default:
		return weak
	}
}

var (
	wish     = regexp.MustCompile(`(?i)\b(?:i (?:want|need|would like|'d like|am (?:trying|planning|working|building|writing))|help me|let's|please|we (?:need|want|should)|the goal|ich (?:möchte|will|brauche)|bitte)\b`)
	decided  = regexp.MustCompile(`(?i)\b(?:decided?|decision|agreed?|let's (?:use|go|take|do)|we(?:'ll| will)|i(?:'ll| will) (?:use|take|go)|instead of|chose|choose|settled on|entschieden|wir nehmen)\b`)
	finished = regexp.MustCompile(`(?i)\b(?:done|finished|completed?|fixed|solved|created|deployed|works now|fertig|erledigt)\b`)
	trouble  = regexp.MustCompile(`(?i)\b(?:errors?|failed|failure|exception|panic|crash(?:ed|es)?|does not work|doesn't work|broken|fehler)\b`)
)

// addGoal takes the first wish of the user as the goal, else the first thing said
// that is more than a greeting. A goal that is there already stays.
func (n *notes) addGoal(transcript []turn) {
	if n.has(sectionGoal) {
		return
	}
	goal := ""
	for _, t := range transcript {
		if t.role != "user" {
			continue
		}
		for _, s := range sentences(t.text) {
			if wish.MatchString(s) {
				n.add(sectionGoal, s)
				return
			}
			if goal == "" && len(strings.Fields(s)) > 3 && !tellsFact(s) {
				goal = s
			}
		}
	}
	n.add(sectionGoal, goal)
}

// addTurn takes from a message what has to be kept. Latest tells that it is the
// newest of the transcript.
func (n *notes) addTurn(t turn, latest bool) {
	if t.role == "tool" {
		n.addResult(t.text)
		return
	}
	for _, s := range sentences(t.text) {
		switch {
		case trouble.MatchString(s):
			n.add(sectionErrors, s)
		case decided.MatchString(s) && !isQuestion(s):
			n.add(sectionDecisions, s)
		case finished.MatchString(s) && !isQuestion(s):
			n.add(sectionOpen, s)
		case t.role != "user":
			// What the assistant says besides that follows from the rest.
		case isQuestion(s) && latest, wish.MatchString(s) && !tellsFact(s):
			n.add(sectionOpen, s)
		default:
			n.add(sectionFacts, s)
		}
	}
}

// addResult takes the first line of a tool's result.
func (n *notes) addResult(text string) {
	line, _, _ := strings.Cut(text, "\n")
	if trouble.MatchString(line) {
		n.add(sectionErrors, line)
		return
	}
	n.add(sectionOpen, line)
}

func (n *notes) has(section string) bool {
	for _, l := range n.lines {
		if l.section == section {
			return true
		}
	}
	return false
}

// shrink takes lines away until the summary has at most limit tokens: the
// lightest first, of these the oldest. The last line is cut if even it is too long.
func (n *notes) shrink(limit int) {
	for w := weak; w <= last; w++ {
		for i := 0; i < len(n.lines) && n.size() > limit; {
			if n.lines[i].weight != w || len(n.lines) == 1 {
				i++
				continue
			}
			n.lines = append(n.lines[:i], n.lines[i+1:]...)
		}
	}
	for l := &n.lines[0]; n.size() > limit && len([]rune(l.text)) > 8; {
		l.text = brief(l.text, len([]rune(l.text))*3/4)
		l.tokens = n.count("- " + l.text + "\n")
	}
}

// size returns the tokens of the summary.
func (n *notes) size() int {
	total := 0
	for _, s := range sections() {
		if n.has(s) {
			total += n.count("## " + s + "\n\n")
		}
	}
	for _, l := range n.lines {
		total += l.tokens
	}
	return total
}

// String writes the summary.
func (n *notes) String() string {
	var b strings.Builder
	for _, s := range sections() {
		if !n.has(s) {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString("## " + s + "\n")
		for _, l := range n.lines {
			if l.section == s {
				b.WriteString("- " + l.text + "\n")
			}
		}
	}
	return strings.TrimSpace(b.String())
}
