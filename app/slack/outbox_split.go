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
	maxPost = 11_000 // of a post, with what reopens and closes a code block
	minPost = maxPost / 4
	maxInfo = 40 // of the language of a code block that is repeated
	maxRows = 90 // lines of a table in one post: Slack shows 100
)

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

// renderSpan returns the span as Markdown of its own: a code block that is cut is closed, and begins again.
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

// block is the code block that a cut is inside of; zero = none.
type block struct {
	opening string // what the next part repeats
	closing string // what ends the part
}

type line struct {
	from, to int // with its line break
	rank     rank
	inside   block // of a cut before the line, or in it
	isRow    bool  // of a table
}

// rank says how good a cut before a line is.
type rank int

const (
	noCut        rank = iota // before the end of a code block
	insideCut                // in a code block, which begins again, or in a table
	lineCut                  // between lines
	paragraphCut             // between paragraphs, before or after code blocks and tables
)

var fenceLine = regexp.MustCompile("^\\s*(`{3,20}|~{3,20})([^`\n]*)$")

// scanLines returns the lines of the text, and behind them an empty one for a cut at the end.
func scanLines(text string) []line {
	var lines []line
	open, gap, wasRow := block{}, true, false // gap = the line before was empty, or ended a block
	for from := 0; from < len(text); {
		to := len(text)
		if i := strings.IndexByte(text[from:], '\n'); i >= 0 {
			to = from + i + 1
		}
		content := strings.TrimSpace(text[from:to])
		l := line{from: from, to: to, rank: lineCut, inside: open, isRow: open.closing == "" && strings.HasPrefix(content, "|")}
		fence := fenceLine.FindStringSubmatch(strings.TrimRight(text[from:to], "\r\n"))
		ended := false
		switch {
		case open.closing != "":
			l.rank = insideCut
			if ended = strings.HasPrefix(content, open.closing) && strings.Trim(content, open.closing[:1]) == ""; ended {
				l.rank, open = noCut, block{}
			}
		case fence != nil:
			l.rank = paragraphCut
			info := strings.TrimSpace(fence[2])
			if core.UTF16Len(info) > maxInfo {
				info = ""
			}
			open = block{opening: fence[1] + info, closing: fence[1]}
		case l.isRow && wasRow:
			l.rank = insideCut
		case l.isRow || gap:
			l.rank = paragraphCut
		}
		gap, wasRow = ended || content == "", l.isRow
		lines = append(lines, l)
		from = to
	}
	return append(lines, line{from: len(text), to: len(text) + 1, inside: open})
}

// blockAt returns what a cut at the offset is inside of.
func blockAt(lines []line, at int) block { return lines[lineIndex(lines, at)].inside }

// lineIndex returns the index of the line that has the offset.
func lineIndex(lines []line, at int) int {
	return sort.Search(len(lines), func(i int) bool { return lines[i].to > at })
}

// nextEnd returns where the part ends that begins at from.
func nextEnd(text string, lines []line, from int) int {
	const tail = 24 // a closing fence
	hard := from + core.UTF16Index(text[from:], maxPost-tail-core.UTF16Len(blockAt(lines, from).opening))
	first := lineIndex(lines, from)
	best, units, before, rows := map[rank]int{}, 0, from, 0
	for i, l := range lines[first+1:] {
		if l.from > hard {
			break
		}
		units, before = units+core.UTF16Len(text[before:l.from]), l.from
		if rows++; !lines[first+i].isRow {
			rows = 0
		}
		if rows == maxRows {
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
	return escapeText(text)
}
