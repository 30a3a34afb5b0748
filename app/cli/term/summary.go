package term

import (
	"fmt"
	"io"
	"strings"
	"time"

	"bobbin/app/core"
)

// DrawSummary draws one version of a summary with its words. Width and height are
// those of the terminal, 0 if there is none.
func DrawSummary(w io.Writer, s core.Summary, now time.Time, width, height int) {
	d := drawing{w: w, width: width}
	d.line("%s", version(s, now))
	if s.ThroughSeq > 0 {
		d.line("  it covers the messages up to #%d", s.ThroughSeq)
	}
	if s.Focus != "" {
		d.line("  focus: %s", s.Focus)
	}
	if s.Content == "" {
		return
	}
	fmt.Fprintln(w)
	text := NewMarkdown(w, width, height)
	text.Write(s.Content)
	text.Close()
}

// Restored says what a session is after an earlier version was restored; 0 = none.
func Restored(version int, session core.Session) string {
	if session.SummaryVersion == 0 {
		return "nothing is summarized any more: " + plural(session.MessageCount, "message") + " of history"
	}
	return fmt.Sprintf("back to version %d, as version %d: it covers %s of %s", version, session.SummaryVersion,
		Number(session.SummarizedCount), plural(session.MessageCount, "message"))
}

// DrawVersions lists versions of a summary.
func DrawVersions(w io.Writer, list []core.Summary, now time.Time, width int) {
	drawing{w: w, width: width}.summaries(list, now)
}

// around is how many lines before and after a change are shown.
const around = 2

// DrawDiff draws how one version of a summary became another: + is new, - is gone.
func DrawDiff(w io.Writer, diff core.SummaryDiff, width int) {
	d := drawing{w: w, width: width}
	against := "nothing"
	if diff.Against > 0 {
		against = fmt.Sprintf("version %d", diff.Against)
	}
	d.line("version %d against %s: %s new, %s gone, %s as before", diff.Version, against, Number(diff.Added), Number(diff.Removed), Number(diff.Equal))
	for i, op := range diff.Ops {
		lines := linesOf(op.Pieces)
		switch op.Op {
		case core.DiffAdded:
			d.marked("+ ", lines)
		case core.DiffRemoved:
			d.marked("- ", lines)
		default:
			d.unchanged(lines, i > 0, i < len(diff.Ops)-1)
		}
	}
}

// marked writes lines with a mark before each of their rows.
func (d drawing) marked(mark string, lines []string) {
	for _, line := range lines {
		for row := range strings.SplitSeq(Wrap(line, max(d.width-len(mark), 0), ""), "\n") {
			fmt.Fprintln(d.w, strings.TrimRight(mark+row, " "))
		}
	}
}

// unchanged writes lines that both versions have: those next to a change.
func (d drawing) unchanged(lines []string, before, after bool) {
	head, tail := 0, 0
	if before {
		head = around
	}
	if after {
		tail = around
	}
	if len(lines) <= head+tail+1 {
		d.marked("  ", lines)
		return
	}
	d.marked("  ", lines[:head])
	d.line("  … %s as before", plural(len(lines)-head-tail, "line"))
	d.marked("  ", lines[len(lines)-tail:])
}

// linesOf returns pieces as lines, without empty ones.
func linesOf(pieces []string) []string {
	var lines []string
	for _, p := range pieces {
		for line := range strings.SplitSeq(p, "\n") {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines
}
