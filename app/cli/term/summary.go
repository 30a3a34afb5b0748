package term

import (
	"cmp"
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
		var lines []string
		for line := range strings.SplitSeq(strings.Join(op.Pieces, "\n"), "\n") {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
		switch op.Op {
		case core.DiffAdded:
			d.writeMarked("+ ", lines)
		case core.DiffRemoved:
			d.writeMarked("- ", lines)
		default:
			head, tail := 0, 0
			if i > 0 {
				head = contextLines
			}
			if i < len(diff.Ops)-1 {
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

// shownInstructions bounds the instructions of a context report that are shown.
const shownInstructions = 20

// drawInstructions lists the newest of those that stand, with their places in the prompt.
func (d drawing) drawInstructions(list []core.StandingInstruction) {
	if len(list) == 0 {
		return
	}
	d.writeLine("  standing instructions:")
	for _, i := range list[max(len(list)-shownInstructions, 0):] {
		from := "added"
		if i.MessageID != "" {
			from = fmt.Sprintf("#%d", i.Seq)
		}
		if i.EditedAt != nil {
			from += ", edited"
		}
		note := ""
		switch {
		case i.EndSeq > 0:
			note = fmt.Sprintf(" (%s by #%d)", i.State, i.EndSeq)
		case i.State != core.InstructionStands:
			note = fmt.Sprintf(" (%s)", i.State)
		case i.Placement == core.PlaceLeftOut:
			note = " (left out: it does not fit)"
		case i.Placement == core.PlaceVerbatim:
			note = " (in its message)"
		}
		d.writeLine("  - %s", fmt.Sprintf("%s: %s%s", from, Line(i.Text, core.MaxInstructionText), note))
	}
	if n := len(list) - shownInstructions; n > 0 {
		d.writeLine("  and %s", Pluralize(n, "older one"))
	}
}

// DrawWhere draws where a message is in the next prompt, and why. Words are its beginning or
// an excerpt; empty = show none.
func DrawWhere(w io.Writer, where core.MessageLocation, words string, width int) {
	d := drawing{w: w, width: width}
	title := cmp.Or(map[core.Placement]string{
		core.PlaceCovered: "summarized", core.PlaceVerbatim: "in the prompt verbatim", core.PlaceMasked: "masked",
		core.PlaceShortened: "shortened", core.PlaceLeftOut: "left out", core.PlaceExcluded: "not sent",
	}[where.Placement], string(where.Placement))
	if where.Pinned {
		title += ", pinned"
	}
	d.writeLine("#%d %s: %s", where.Seq, where.Role, title)
	if words != "" {
		d.writeLine("    %s", Line(words, 160))
	}
	d.writeLine("    %s", where.Reason)
	if where.Note != "" {
		d.writeLine("    %s", where.Note)
	}
	d.writeLine("    %s tokens stored (%s for %s), %s in the prompt",
		core.Number(where.TokenCount), core.Number(where.WholeTokens), where.Model, core.Number(where.PromptTokens))
}

// HighlightedText returns an excerpt with the matches in brackets.
func HighlightedText(h core.SearchHit) string {
	var b strings.Builder
	for _, p := range h.Pieces {
		if p.Match {
			p.Text = "[" + p.Text + "]"
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// DrawHit draws a search result: the message's session and role, and below it the excerpt.
func DrawHit(out io.Writer, h core.SearchHit, zone *time.Location, width int) {
	fmt.Fprintf(out, "%s  #%d  %s  %s", h.SessionID, h.Seq, h.Role, h.CreatedAt.In(zone).Format(time.DateTime))
	if h.SessionTitle != "" {
		fmt.Fprintf(out, "  %s", Line(h.SessionTitle, maxTitle))
	}
	const indent = "  "
	if width > 0 {
		width -= len(indent)
	}
	text := Wrap(strings.TrimSpace(HighlightedText(h)), width, "")
	fmt.Fprintf(out, "\n%s%s\n", indent, strings.ReplaceAll(text, "\n", "\n"+indent))
}

// maxTitle is the maximum width of a session's title in a list.
const maxTitle = 40
