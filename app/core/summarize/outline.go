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

// outline is the part of a summary that code writes: sections of short lines. Stored
// summaries are parsed by its headings.
type outline []*section

// section is a heading, and lines under it, oldest first.
type section struct {
	heading       string
	share         int            // of the room, in proportion to the shares of the other sections
	before, after string         // what stands around the text of a line, such as quotation marks
	rank          func(*section) // ranks the lines: the highest stay, of equals the newest
	lines         []line
	more          int // lines that earlier summaries had no room for
	size          int // tokens of all
	room          int // tokens that it may have
}

// line is an entry of a section.
type line struct {
	text   string
	note   string // such as "exit 1"; empty = none
	ref    string // the message that it is from; empty = not known
	tokens int    // of the whole line
	rank   float64
}

const (
	lineBytes     = 600 // of a line's text
	maxLines      = 500 // of a section in memory; no summary can show more
	minLineTokens = 6   // of a line that says something
	headingTokens = 10  // of a heading, its line breaks and "+12 more"
)

// section returns the section with the heading; nil = there is none. Models change the marks around it.
func (o outline) section(heading string) *section {
	name := strings.Trim(heading, "#*: ")
	i := slices.IndexFunc(o, func(s *section) bool { return strings.EqualFold(s.heading, name) })
	if i < 0 {
		return nil
	}
	return o[i]
}

// add adds a line. A text that is there already moves to the end, and keeps its note unless there is a new one.
func (s *section) add(text, note, ref string) {
	l := line{text: prompttext.Line(prompttext.Harmless(text), lineBytes), note: note, ref: ref}
	if l.text == "" {
		return
	}
	if i := slices.IndexFunc(s.lines, func(known line) bool { return known.text == l.text }); i >= 0 {
		l.note, l.ref = cmp.Or(l.note, s.lines[i].note), cmp.Or(l.ref, s.lines[i].ref)
		s.lines = slices.Delete(s.lines, i, i+1)
	}
	s.lines = append(s.lines, l)
	if len(s.lines) > maxLines {
		s.lines, s.more = s.lines[1:], s.more+1
	}
}

// format returns the line as the summary shows it.
func (s *section) format(l line) string {
	text := "- " + s.before + l.text + s.after
	if l.note != "" {
		text += " → " + l.note
	}
	if l.ref != "" {
		text += " [" + l.ref + "]"
	}
	return text
}

var (
	entryRef  = regexp.MustCompile(`^(.*) \[([0-9A-Za-z_-]{1,24})\]$`)
	entryNote = regexp.MustCompile(`^(.*) → (exit -?\d+)$`)
	moreLine  = regexp.MustCompile(`^\+(\d{1,9}) more$`)
)

// parse takes the lines of its sections out of an earlier summary, and returns the rest.
func (o outline) parse(summary string) (rest string) {
	var b strings.Builder
	var current *section
	for text := range strings.Lines(summary) {
		bare := strings.TrimSpace(text)
		if prompttext.IsHeading(bare) && !strings.HasPrefix(bare, "### ") {
			if current = o.section(bare); current != nil {
				continue
			}
		}
		if current == nil || !current.parseLine(bare) {
			b.WriteString(text)
		}
	}
	return strings.TrimSpace(b.String())
}

// parseLine adds a line that format wrote, and reports whether it is one.
func (s *section) parseLine(text string) bool {
	if m := moreLine.FindStringSubmatch(text); m != nil {
		n, err := strconv.Atoi(m[1])
		s.more += n
		return err == nil
	}
	text, ok := strings.CutPrefix(text, "- ")
	if !ok {
		return text == ""
	}
	var note, ref string
	if m := entryRef.FindStringSubmatch(text); m != nil {
		text, ref = m[1], m[2]
	}
	if m := entryNote.FindStringSubmatch(text); m != nil {
		text, note = m[1], m[2]
	}
	s.add(strings.TrimSuffix(strings.TrimPrefix(text, s.before), s.after), note, ref)
	return true
}

// render returns the sections in at most limit tokens: of each the newest lines in the
// order of the conversation, below the number of those that are left out.
func (o outline) render(count core.TextCounter, limit int) string {
	for _, s := range o {
		s.size = 0
		for i, l := range s.lines {
			if l.tokens == 0 {
				s.lines[i].tokens = count.Text(s.format(l)) + 1
			}
			s.size += s.lines[i].tokens
		}
		if s.size > 0 {
			s.size += headingTokens
		}
		if s.rank != nil {
			s.rank(s)
		}
	}
	for room := limit; room >= MinLimit; room -= max(limit/16, 1) {
		var parts []string
		o.divide(room)
		for _, s := range o {
			if text := s.render(count); text != "" {
				parts = append(parts, text)
			}
		}
		if out := strings.Join(parts, "\n\n"); count.Text(out) <= limit {
			return out
		}
	}
	return ""
}

// divide gives each section its share of the room, and the others what short ones do not use.
func (o outline) divide(room int) {
	shares := 0
	for _, s := range o {
		if s.room = 0; s.size > 0 {
			shares += s.share
		}
	}
	for _, s := range slices.SortedFunc(slices.Values(o), func(a, b *section) int { return a.size*b.share - b.size*a.share }) {
		if s.size > 0 {
			s.room = min(s.size, room*s.share/shares)
			room, shares = room-s.room, shares-s.share
		}
	}
}

// render returns the section in about its room; empty = no lines, or no room.
func (s *section) render(count core.TextCounter) string {
	room := s.room - headingTokens
	if len(s.lines) == 0 || s.room < s.size && room < minLineTokens {
		return ""
	}
	order := make([]int, len(s.lines)) // those of the highest rank first, of equals the newest
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(s.lines[b].rank, s.lines[a].rank), b-a) })
	var chosen []int
	left := room
	for _, i := range order {
		if s.lines[i].tokens <= left {
			chosen, left = append(chosen, i), left-s.lines[i].tokens
		}
	}
	var shown []line
	for _, at := range slices.Sorted(slices.Values(chosen)) {
		shown = append(shown, s.lines[at])
	}
	if len(shown) == 0 { // not even one: the beginning of the newest
		l := s.lines[len(s.lines)-1]
		if l.text = prompttext.Head(count, l.text, room-(l.tokens-count.Text(l.text))); l.text == "" {
			return ""
		}
		shown = []line{l}
	}
	var b strings.Builder
	b.WriteString("## " + s.heading)
	if more := s.more + len(s.lines) - len(shown); more > 0 {
		fmt.Fprintf(&b, "\n+%d more", more)
	}
	for _, l := range shown {
		b.WriteString("\n" + s.format(l))
	}
	return b.String()
}

// join returns a text under a heading, and the sections, in at most limit tokens. It cuts
// the oldest part of the text, not the sections.
func join(count core.TextCounter, heading, text, sections string, limit int) string {
	for room := limit - count.Text(sections); ; room -= max(limit/16, joinTokens) {
		var parts []string
		if text = prompttext.Oldest(count, text, max(room, 0)); text != "" {
			parts = append(parts, heading+"\n"+text)
		}
		if sections != "" {
			parts = append(parts, sections)
		}
		if out := strings.Join(parts, "\n\n"); room <= 0 || count.Text(out) <= limit {
			return out
		}
	}
}
