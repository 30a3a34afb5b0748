package term

import (
	"io"
	"strings"

	"bobbin/app/core"
)

// DrawWhere draws where a message is in the next prompt, and why. Words are its beginning or
// an excerpt; empty = show none.
func DrawWhere(w io.Writer, where core.MessageLocation, words string, width int) {
	d := drawing{w: w, width: width}
	title := placeName(where.Placement)
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

// placeName returns a placement in words.
func placeName(p core.Placement) string {
	names := map[core.Placement]string{
		core.PlaceCovered: "summarized", core.PlaceVerbatim: "in the prompt verbatim", core.PlaceMasked: "masked",
		core.PlaceShortened: "shortened", core.PlaceLeftOut: "left out", core.PlaceExcluded: "not sent",
	}
	if name, ok := names[p]; ok {
		return name
	}
	return string(p)
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
