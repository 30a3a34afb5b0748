package term

import (
	"fmt"
	"io"
	"strings"
	"time"

	"bobbin/app/core"
)

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
