package slack

import (
	"regexp"
	"sort"
	"strings"

	"bobbin/app/core"
)

// Limits of one post, in code units of UTF-16. Slack takes 12,000 in a markdown block and in
// a piece of a stream.
const (
	maxPost   = 11_000 // of a post, with what reopens and closes a code block or a table
	minPost   = maxPost / 4
	maxReopen = 2000 // of the header of a table that is repeated in the next part
	maxInfo   = 40   // of the language of a code block that is repeated
	maxRows   = 90   // rows of a table in one post: Slack shows 100
)

// span is the part text[from:to] of a text.
type span struct{ from, to int }

// splitText splits the text from an offset on into spans that fit into posts. They end
// between paragraphs if possible, else between lines, else between words. The spans join to
// the text, and the first ones do not depend on what follows a full post.
func splitText(text string, from int) []span {
	lines := scanLines(text)
	var spans []span
	for from < len(text) {
		to := nextEnd(text, lines, from)
		spans = append(spans, span{from, to})
		from = to
	}
	return spans
}

// renderSpan returns the span as Markdown of its own: a code block or a table that is cut
// begins again, and a code block is closed.
func renderSpan(text string, s span) string {
	return renderLines(text, scanLines(text), s)
}

func renderLines(text string, lines []line, s span) string {
	body := strings.TrimRight(text[s.from:s.to], "\n")
	before, after := blockAt(lines, s.from), blockAt(lines, s.to)
	if before.opening == "" {
		body = strings.TrimLeft(body, "\n")
	} else {
		body = before.opening + "\n" + body
	}
	if after.closing != "" {
		body += "\n" + after.closing
	}
	return body
}

// block is the code block or table that a cut is inside of; zero = none.
type block struct {
	opening string // what the next part repeats; empty = nothing
	closing string // what ends the part; empty = nothing
}

// line is a line of a text.
type line struct {
	from, to int // with its line break
	rank     rank
	inside   block // of a cut before the line
	within   block // of a cut in the line
	table    int   // where its table begins
	rows     int   // of its table before this line
}

// rank says how good a cut before a line is.
type rank int

const (
	noCut        rank = iota // before the rule of a table, or the end of a code block
	insideCut                // in a code block or a table, which begins again
	lineCut                  // between lines
	paragraphCut             // between paragraphs, before or after code blocks and tables
)

// scanner reads the lines of a text in order.
type scanner struct {
	text   string
	fence  string // closing fence of the open code block; empty = none is open
	open   block
	table  block // of the open table
	header int   // where it begins
	rows   int   // of the table that were read; -1 = the rule follows
	inRow  bool
	gap    bool // the line before was empty, or ended a block
}

var (
	fenceLine = regexp.MustCompile("^\\s*(`{3,20}|~{3,20})([^`\n]*)$")
	tableRule = regexp.MustCompile(`^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$`)
)

// scanLines returns the lines of the text, and behind them an empty one for a cut at the end.
func scanLines(text string) []line {
	s := scanner{text: text, gap: true}
	var lines []line
	for from := 0; from < len(text); {
		to := len(text)
		if i := strings.IndexByte(text[from:], '\n'); i >= 0 {
			to = from + i + 1
		}
		l := line{from: from, to: to, rank: lineCut, table: s.header, rows: s.rows}
		content := strings.TrimRight(s.text[from:to], "\r\n")
		if s.gap {
			l.rank = paragraphCut
		}
		s.gap = false
		switch {
		case s.fence != "":
			l.rank, l.inside, l.within = insideCut, s.open, s.open
			if trimmed := strings.TrimSpace(content); strings.HasPrefix(trimmed, s.fence) && strings.Trim(trimmed, s.fence[:1]) == "" {
				l.rank, s.fence, s.gap = noCut, "", true
			}
		case s.inRow && s.rows < 0: // the rule of a table
			l.rank, s.rows = noCut, 0
		case s.inRow && strings.Contains(content, "|"):
			l.rank, l.inside = insideCut, s.table
			s.rows++
		default:
			s.inRow = false
			s.scanBlock(&l, content)
		}
		lines = append(lines, l)
		from = to
	}
	end := line{from: len(text), to: len(text) + 1}
	if s.fence != "" {
		end.inside = s.open
	}
	return append(lines, end)
}

// scanBlock reads a line outside of code blocks and tables.
func (s *scanner) scanBlock(l *line, content string) {
	if strings.TrimSpace(content) == "" {
		s.gap = true
		return
	}
	if m := fenceLine.FindStringSubmatch(content); m != nil {
		l.rank, s.fence = paragraphCut, m[1]
		info := strings.TrimSpace(m[2])
		if core.UTF16Len(info) > maxInfo {
			info = ""
		}
		s.open = block{opening: m[1] + info, closing: m[1]}
		return
	}
	rule, _, _ := strings.Cut(s.text[l.to:], "\n")
	if !strings.Contains(content, "|") || !strings.Contains(rule, "|") || !tableRule.MatchString(strings.TrimRight(rule, "\r")) {
		return
	}
	l.rank, s.inRow, s.rows, s.header, s.table = paragraphCut, true, -1, l.from, block{opening: content + "\n" + rule}
	if core.UTF16Len(s.table.opening) > maxReopen {
		s.table = block{}
	}
}

// blockAt returns what a cut at the offset is inside of.
func blockAt(lines []line, at int) block {
	l := lines[lineIndex(lines, at)]
	if l.from == at {
		return l.inside
	}
	return l.within
}

// lineIndex returns the index of the line that has the offset.
func lineIndex(lines []line, at int) int {
	return sort.Search(len(lines), func(i int) bool { return lines[i].to > at })
}

// nextEnd returns where the part ends that begins at from.
func nextEnd(text string, lines []line, from int) int {
	const tail = 24 // a closing fence
	hard := from + core.UTF16Index(text[from:], maxPost-tail-core.UTF16Len(blockAt(lines, from).opening))
	first := lineIndex(lines, from)
	best, units, before := map[rank]int{}, 0, from
	for _, l := range lines[first+1:] {
		if l.from > hard {
			break
		}
		units, before = units+core.UTF16Len(text[before:l.from]), l.from
		if l.rowsAfter(lines[first], from) >= maxRows {
			return l.from
		}
		if units >= minPost {
			best[l.rank] = l.from
		}
	}
	if hard == len(text) {
		return hard
	}
	for r := paragraphCut; r > noCut; r-- {
		if at, ok := best[r]; ok {
			return at
		}
	}
	if i := strings.LastIndexAny(text[from:hard], " \t\n"); i > (hard-from)/2 {
		return from + i + 1
	}
	return hard
}

// rowsAfter returns how many rows of the table of l are before l in a part that begins at
// from, in the line first.
func (l line) rowsAfter(first line, from int) int {
	switch {
	case l.rank != insideCut || l.inside.closing != "":
		return 0
	case l.table < from:
		return l.rows - first.rows
	}
	return l.rows
}

var mention = regexp.MustCompile(`<(?:!(?:channel|here|everyone|subteam|group)|@[UWB])`)

// neutralizeMentions returns the text in which markup that notifies people or channels is
// only text.
func neutralizeMentions(text string) string {
	return mention.ReplaceAllStringFunc(text, func(m string) string { return "<\u2060" + m[1:] })
}

// plainText returns the beginning of the text for notifications, in Slack's own escaping.
func plainText(text string) string {
	const units = 300
	if cut := core.UTF16Index(text, units); cut < len(text) {
		text = strings.ToValidUTF8(text[:cut], "") + "…"
	}
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
