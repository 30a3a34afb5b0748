package term

import (
	"io"
	"strings"

	"bobbin/app/core"
)

// DrawWhere says where a message is in the next prompt, and why. Words are its
// beginning, or where something was found in it; empty = none are shown.
func DrawWhere(w io.Writer, where core.MessageWhere, words string, width int) {
	d := drawing{w: w, width: width}
	title := placeName(where.Placement)
	if where.Pinned {
		title += ", pinned"
	}
	d.line("#%d %s: %s", where.Seq, where.Role, title)
	if words != "" {
		d.line("    %s", Line(words, 160))
	}
	d.line("    %s", where.Reason)
	if where.Note != "" {
		d.line("    %s", where.Note)
	}
	d.line("    %s tokens in the log (%s for %s), %s in the prompt",
		Number(where.TokenCount), Number(where.WholeTokens), where.Model, Number(where.PromptTokens))
}

// placeName is a placement in words.
func placeName(p core.Placement) string {
	names := map[core.Placement]string{
		core.PlaceCovered: "summarized", core.PlaceVerbatim: "in the prompt, word for word", core.PlaceMasked: "masked",
		core.PlaceShortened: "shortened", core.PlaceLeftOut: "left out", core.PlaceExcluded: "not sent",
	}
	if name, ok := names[p]; ok {
		return name
	}
	return string(p)
}

// Found returns an excerpt with what was found in brackets.
func Found(h core.SearchHit) string {
	var b strings.Builder
	last := 0
	for _, m := range h.Highlights {
		b.WriteString(h.Excerpt[last:m.Start] + "[" + h.Excerpt[m.Start:m.End] + "]")
		last = m.End
	}
	return b.String() + h.Excerpt[last:]
}
