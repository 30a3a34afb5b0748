package term

import (
	"fmt"
	"io"
	"strings"
	"time"

	"bobbin/app/core"
)

// DrawSummary draws one version of a summary with its text. Width and height are those of the
// terminal, 0 if there is none.
func DrawSummary(w io.Writer, s core.Summary, now time.Time, width, height int) {
	d := drawing{w: w, width: width}
	d.writeLine("%s", describeVersion(s, now))
	if s.ThroughSeq > 0 {
		d.writeLine("  covers messages up to #%d", s.ThroughSeq)
	}
	if s.Focus != "" {
		d.writeLine("  focus: %s", s.Focus)
	}
	if s.Content == "" {
		return
	}
	fmt.Fprintln(w)
	text := NewMarkdown(w, width, height)
	text.Write(s.Content)
	text.Close()
}

// RestoredText describes a session after a version was restored; 0 = no summary.
func RestoredText(version int, session core.Session) string {
	if session.SummaryVersion == 0 {
		return "no active summary: " + Pluralize(session.MessageCount, "message") + " in history"
	}
	return fmt.Sprintf("restored version %d as version %d: it covers %s of %s", version, session.SummaryVersion,
		core.Number(session.SummarizedCount), Pluralize(session.MessageCount, "message"))
}

// DrawVersions lists versions of a summary.
func DrawVersions(w io.Writer, list []core.Summary, now time.Time, width int) {
	drawing{w: w, width: width}.drawSummaries(list, now)
}

// contextLines is how many lines DrawDiff shows before and after a change.
const contextLines = 2

// DrawDiff draws the changes between two versions of a summary: + is added, - is removed.
func DrawDiff(w io.Writer, diff core.SummaryDiff, width int) {
	d := drawing{w: w, width: width}
	against := "an empty summary"
	if diff.Against > 0 {
		against = fmt.Sprintf("version %d", diff.Against)
	}
	d.writeLine("version %d compared to %s: %s added, %s removed, %s unchanged", diff.Version, against, core.Number(diff.Added), core.Number(diff.Removed), core.Number(diff.Equal))
	for i, op := range diff.Ops {
		lines := linesOf(op.Pieces)
		switch op.Op {
		case core.DiffAdded:
			d.writeMarked("+ ", lines)
		case core.DiffRemoved:
			d.writeMarked("- ", lines)
		default:
			before := i > 0
			after := i < len(diff.Ops)-1
			head, tail := 0, 0
			if before {
				head = contextLines
			}
			if after {
				tail = contextLines
			}
			if len(lines) <= head+tail+1 {
				d.writeMarked("  ", lines)
				continue
			}
			d.writeMarked("  ", lines[:head])
			d.writeLine("  … %s unchanged", Pluralize(len(lines)-head-tail, "line"))
			d.writeMarked("  ", lines[len(lines)-tail:])
		}
	}
}

// writeMarked writes lines with a prefix before each row.
func (d drawing) writeMarked(mark string, lines []string) {
	for _, line := range lines {
		for row := range strings.SplitSeq(Wrap(line, max(d.width-len(mark), 0), ""), "\n") {
			fmt.Fprintln(d.w, strings.TrimRight(mark+row, " "))
		}
	}
}

// linesOf returns the non-empty lines of pieces.
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
