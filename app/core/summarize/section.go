package summarize

import (
	"fmt"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
)

// section is a part of an extract: a heading, and lines or prose under it.
type section struct {
	heading string
	share   int // of the room, in proportion to those of the other sections
	kind    sectionKind
	text    string        // of prose
	lines   []sectionLine // oldest first
	more    int           // lines that earlier summaries could not show
	size    int           // tokens of the whole section; see measureSections
}

// sectionKind decides what a section shows if not all of it fits.
type sectionKind int

const (
	newestLines  sectionKind = iota // the newest lines
	tellingLines                    // the most informative lines, see chooseMostTelling
	unsaidLines                     // the same, without what other sections say
	runningText                     // text, its oldest part cut
)

// sectionLine is a line of a section.
type sectionLine struct {
	text   string // without the list marker
	tokens int
	terms  []term
}

const (
	quoteBytes    = 240 // of one line
	maxLines      = 1_000
	markTokens    = 3  // of a line's list marker and line break
	headingTokens = 10 // of a heading, its line breaks and "+12 more"
)

// parseLine adds a line that render wrote, and reports whether it is one.
func (s *section) parseLine(line string) bool {
	if more, ok := parseMore(line); ok && s.kind != runningText {
		s.more += more
		return true
	}
	text, ok := strings.CutPrefix(line, "- ")
	if !ok || s.kind == runningText {
		return false
	}
	s.addLine(text, "")
	return true
}

// addLine adds a line; ref names the message that it quotes; empty = the text has it.
func (s *section) addLine(text, ref string) {
	text = prompttext.Line(prompttext.Harmless(text), 2*quoteBytes)
	if text == "" {
		return
	}
	if ref != "" {
		text += " [" + ref + "]"
	}
	s.lines = append(s.lines, sectionLine{text: text})
	if len(s.lines) > 2*maxLines {
		s.lines, s.more = slices.Delete(s.lines, 0, maxLines), s.more+maxLines
	}
}

// newestText returns the newest line, or the text of a section without lines.
func (s section) newestText() string {
	if len(s.lines) > 0 {
		return s.lines[len(s.lines)-1].text
	}
	return s.text
}

// measureSections counts the tokens of the lines, and weighs the words of lines that are
// chosen by them.
func measureSections(count core.TextCounter, sections []section) {
	var common frequencies
	for i := range sections {
		s := &sections[i]
		if s.size = 0; s.text != "" {
			s.size = headingTokens + count.Text(s.text)
		}
		for j := range s.lines {
			q := &s.lines[j]
			q.tokens = count.Text(q.text) + markTokens
			s.size += q.tokens
			if s.kind == tellingLines || s.kind == unsaidLines {
				q.terms = termsOf(q.text)
				common.addTerms(q.terms)
			}
		}
		if len(s.lines) > 0 {
			s.size += headingTokens
		}
	}
	for i := range sections {
		for _, q := range sections[i].lines {
			common.weighTerms(q.terms)
		}
	}
}

// divideRoom divides the room among the sections: each gets its share or its size, and
// what short sections do not use goes to the others.
func divideRoom(sections []section, room int) []int {
	granted := make([]int, len(sections))
	for {
		total, open := 0, []int(nil)
		for i, s := range sections {
			if granted[i] == 0 && s.size > 0 {
				total, open = total+s.share, append(open, i)
			}
		}
		i := slices.IndexFunc(open, func(i int) bool { return sections[i].size*total <= room*sections[i].share })
		if i < 0 {
			for _, i := range open {
				granted[i] = room * sections[i].share / total
			}
			return granted
		}
		granted[open[i]] = sections[open[i]].size
		room -= granted[open[i]]
	}
}

// render renders the section in about room tokens; empty = no content, or no room.
func (s section) render(count core.TextCounter, room int, said map[string]bool) string {
	room -= headingTokens
	if s.kind == runningText {
		if text := prompttext.Oldest(count, s.text, room); text != "" {
			return s.heading + "\n" + text
		}
		return ""
	}
	if room < minEntryTokens || len(s.lines) == 0 {
		return ""
	}
	var b strings.Builder
	chosen := s.chooseLines(count, room, said)
	if len(chosen) == 0 {
		return ""
	}
	b.WriteString(s.heading)
	if more := s.more + len(s.lines) - len(chosen); more > 0 {
		fmt.Fprintf(&b, "\n+%d more", more)
	}
	for _, q := range chosen {
		b.WriteString("\n- " + q.text)
	}
	return b.String()
}

// chooseLines returns the lines that fit the room, oldest first. If none fits, it
// shortens the newest.
func (s section) chooseLines(count core.TextCounter, room int, said map[string]bool) []sectionLine {
	var chosen []int
	if s.kind == tellingLines || s.kind == unsaidLines {
		chosen = chooseMostTelling(s.lines, room, said, s.kind == tellingLines)
	}
	for i := len(s.lines) - 1; s.kind == newestLines && i >= 0 && s.lines[i].tokens <= room; i-- {
		chosen, room = append(chosen, i), room-s.lines[i].tokens
	}
	if len(chosen) == 0 && s.kind != unsaidLines {
		return []sectionLine{{text: shortenLine(count, s.newestText(), room-markTokens)}}
	}
	slices.Sort(chosen)
	out := make([]sectionLine, len(chosen))
	for i, at := range chosen {
		out[i] = s.lines[at]
	}
	return out
}

// shortenLine returns the beginning of a line, and the message that it quotes.
func shortenLine(count core.TextCounter, text string, limit int) string {
	m := entryRef.FindStringSubmatch(text)
	if m == nil {
		return prompttext.Head(count, text, limit)
	}
	end := " [" + m[2] + "]"
	if strings.HasPrefix(text, `"`) {
		end = `"` + end
	}
	return prompttext.Head(count, strings.TrimSuffix(m[1], `"`), limit-count.Text(end)-1) + end
}
