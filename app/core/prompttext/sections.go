package prompttext

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"bobbin/app/core"
)

// Oldest returns text with at most limit tokens, without its oldest content: it cuts the
// beginning of the longest sections, in whole Sentences or list entries, so that short
// sections stay whole. Text within the limit is returned without surrounding blanks. The
// result is valid UTF-8; it is not empty when text is not and limit is at least Least.
func Oldest(count core.TextCounter, text string, limit int) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	if count.Text(text) <= limit {
		return text
	}
	sections := splitSections(count, text)
	// Joined text may have a few more tokens than its pieces: then shrink further.
	for room := limit; room > 0; room -= max(limit/16, 1) {
		var sizes []int
		for _, s := range sections {
			sizes = append(sizes, s.totalTokens())
		}
		size := FairShare(sizes, room)
		for _, s := range sections {
			s.shrinkTo(count, size)
		}
		var b strings.Builder
		for _, s := range sections {
			body := s.bodyText()
			if body == "" {
				continue
			}
			if b.Len() > 0 {
				b.WriteString("\n")
			}
			if s.heading != "" {
				b.WriteString(s.heading + "\n")
			}
			b.WriteString(body + "\n")
		}
		if out := strings.TrimSpace(b.String()); out != "" && count.Text(out) <= limit {
			return out
		}
	}
	return Head(count, text, limit)
}

// section is a heading and the text below it, oldest first.
type section struct {
	heading string // empty = text before the first heading
	cost    int    // tokens of the heading, and of the mark of a cut
	units   []unit
	tokens  int // of all units
	cut     bool
}

// unit is kept or cut as a whole: a list entry or a sentence.
type unit struct {
	text   string // with the blanks after it
	tokens int
}

func splitSections(count core.TextCounter, text string) []*section {
	current := &section{}
	sections := []*section{current}
	for line := range strings.Lines(text) {
		if IsHeading(line) {
			current = &section{heading: strings.TrimSpace(line)}
			current.cost = count.Text(current.heading) + 2
			sections = append(sections, current)
			continue
		}
		for _, s := range Sentences(line) {
			u := unit{text: s, tokens: count.Text(s)}
			current.units = append(current.units, u)
			current.tokens += u.tokens
		}
	}
	return sections
}

// IsHeading reports whether the line is a Markdown heading, or all bold.
func IsHeading(line string) bool {
	line = strings.TrimSpace(line)
	if rest := strings.TrimLeft(line, "#"); rest != line {
		return strings.HasPrefix(rest, " ") && len(line)-len(rest) <= 6
	}
	bold := strings.TrimSuffix(line, ":")
	return len(line) > 4 && len(line) < 80 && strings.HasPrefix(bold, "**") && strings.HasSuffix(bold, "**")
}

// isListEntry reports whether the line begins like a list entry.
func isListEntry(line string) bool {
	line = strings.TrimSpace(line)
	for _, mark := range []string{"- ", "* ", "+ ", "• ", "> "} {
		if strings.HasPrefix(line, mark) {
			return true
		}
	}
	rest := strings.TrimLeft(line, "0123456789")
	return rest != line && (strings.HasPrefix(rest, ". ") || strings.HasPrefix(rest, ") "))
}

// Sentences splits a line after each sentence; its line break belongs to the last one. A
// list entry stays whole.
func Sentences(line string) []string {
	if isListEntry(line) {
		return []string{line}
	}
	var out []string
	start := 0
	ended, blank := false, false // whether a sentence ended, and a blank followed
	for i, r := range line {
		switch {
		case strings.ContainsRune("。！？।", r): // no blank follows these
			end := i + utf8.RuneLen(r)
			out = append(out, line[start:end])
			start, ended = end, false
		case r == '.' || r == '!' || r == '?':
			ended, blank = r != '.' || !endsWithTitle(line[start:i]), false
		case unicode.IsSpace(r):
			blank = true
		default:
			if ended && blank {
				out = append(out, line[start:i])
				start = i
			}
			ended, blank = false, false
		}
	}
	if start < len(line) {
		out = append(out, line[start:])
	}
	return out
}

// endsWithTitle reports whether the text ends with the abbreviation of a title, whose full
// stop ends no sentence: a name follows.
func endsWithTitle(text string) bool {
	word := text[strings.LastIndexByte(text, ' ')+1:]
	return slices.Contains([]string{"Dr", "Mr", "Mrs", "Ms", "Prof", "Hr", "Fr", "Sr", "Sra"}, word)
}

// totalTokens returns the tokens of the section; without units its heading goes too.
func (s *section) totalTokens() int {
	if len(s.units) == 0 {
		return 0
	}
	return s.cost + s.tokens
}

// FairShare returns the limit for each size at which all sizes together are at most
// total: only the largest are cut.
func FairShare(sizes []int, total int) int {
	sizes = slices.Sorted(slices.Values(sizes))
	for i, size := range sizes {
		each := total / (len(sizes) - i)
		if size > each {
			return each
		}
		total -= size
	}
	return math.MaxInt
}

// minFragment is the number of tokens below which the beginning of a sentence says nothing.
const minFragment = 8

// shrinkTo drops the oldest units until the section has at most limit tokens. If that would
// leave less than half of them, it shortens the last one dropped instead, if there is room
// for more than a fragment.
func (s *section) shrinkTo(count core.TextCounter, limit int) {
	if s.totalTokens() <= limit {
		return
	}
	if !s.cut {
		s.cut = true
		s.cost += 2 // the mark
	}
	var dropped unit
	for len(s.units) > 0 && s.totalTokens() > limit {
		dropped, s.units = s.units[0], s.units[1:]
		s.tokens -= dropped.tokens
	}
	room := limit - s.cost - s.tokens
	if room < minFragment || len(s.units) > 0 && s.cost+s.tokens >= limit/2 {
		return
	}
	end := "" // between it and the next unit
	if len(s.units) > 0 {
		end, room = cmp.Or(dropped.text[len(strings.TrimRight(dropped.text, "\n")):], " "), room-1
	}
	text := Head(count, strings.TrimRight(dropped.text, "\n"), room) + end
	s.units = slices.Insert(s.units, 0, unit{text: text, tokens: count.Text(text)})
	s.tokens += s.units[0].tokens
}

// bodyText returns the text under the heading, with a mark where the beginning was cut.
func (s *section) bodyText() string {
	if len(s.units) == 0 {
		return ""
	}
	var b strings.Builder
	if s.cut {
		b.WriteString(Ellipsis)
		if isListEntry(s.units[0].text) {
			b.WriteString("\n")
		} else {
			b.WriteString(" ")
		}
	}
	for _, u := range s.units {
		b.WriteString(u.text)
	}
	return strings.TrimSpace(b.String())
}
