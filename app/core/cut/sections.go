package cut

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Oldest returns text with at most limit tokens. What goes is the oldest
// content: the beginning of the longest sections, in whole Sentences or list
// entries, so that short sections stay whole. Text within the limit comes back
// without the blanks around it. The result is valid UTF-8; it is not empty when
// text is not and limit is at least Least.
func Oldest(count counter, text string, limit int) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	if count.Text(text) <= limit {
		return text
	}
	sections := splitSections(count, text)
	// Joined text may count a little more than its pieces: then shrink harder.
	for room := limit; room > 0; room -= max(limit/16, 1) {
		shrink(count, sections, room)
		if out := joinSections(sections); out != "" && count.Text(out) <= limit {
			return out
		}
	}
	return Head(count, text, limit)
}

// section is a heading and what stands under it, oldest first.
type section struct {
	heading string // empty = text before the first heading
	cost    int    // tokens of the heading, and of the mark of a cut
	units   []unit
	tokens  int // of all units
	cut     bool
}

// unit is what is kept or cut as a whole: a list entry or a sentence.
type unit struct {
	text   string // with the blanks that follow it
	tokens int
}

func splitSections(count counter, text string) []*section {
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

// isListEntry reports whether the line begins like an entry of a list.
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

// Sentences splits a line after each end of a sentence; its line break belongs
// to the last one. An entry of a list stays whole.
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
			ended, blank = true, false
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

// shrink takes the oldest units off the longest sections until all sections
// together have at most limit tokens.
func shrink(count counter, sections []*section, limit int) {
	total := 0
	for _, s := range sections {
		total += s.size()
	}
	if total <= limit {
		return
	}
	most := level(sections, limit)
	for _, s := range sections {
		s.shrink(count, most)
	}
}

// size is what the section takes; without units its heading goes too.
func (s *section) size() int {
	if len(s.units) == 0 {
		return 0
	}
	return s.cost + s.tokens
}

// level returns the largest size that every section may have so that together
// they have at most limit tokens: what short sections leave over, long ones get.
func level(sections []*section, limit int) int {
	var sizes []int
	for _, s := range sections {
		if n := s.size(); n > 0 {
			sizes = append(sizes, n)
		}
	}
	slices.Sort(sizes)
	rest := limit
	for i, n := range sizes {
		share := rest / (len(sizes) - i)
		if n > share {
			return share
		}
		rest -= n
	}
	return limit
}

// leastFragment is the number of tokens under which the beginning of a sentence
// says nothing.
const leastFragment = 8

// shrink drops the oldest units until the section has at most most tokens. The
// last one is shortened, if there is room for more than a fragment.
func (s *section) shrink(count counter, most int) {
	if s.size() <= most {
		return
	}
	if !s.cut {
		s.cut = true
		s.cost += 2 // the mark
	}
	for len(s.units) > 1 && s.size() > most {
		s.tokens -= s.units[0].tokens
		s.units = s.units[1:]
	}
	if s.size() <= most {
		return
	}
	if room := most - s.cost; room >= leastFragment {
		text := Head(count, s.units[0].text, room)
		s.units = []unit{{text: text, tokens: count.Text(text)}}
		s.tokens = s.units[0].tokens
		return
	}
	s.units = nil
}

func joinSections(sections []*section) string {
	var b strings.Builder
	for _, s := range sections {
		body := s.body()
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
	return strings.TrimSpace(b.String())
}

// body is the text under the heading, with a mark where the beginning was cut.
func (s *section) body() string {
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
