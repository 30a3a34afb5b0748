package term

import (
	"fmt"
	"io"
	"strings"
	"time"

	"bobbin/app/core"
)

// barWidth is the width of the window's picture, in characters.
const barWidth = 60

// sectionMarks are how the sections look in the bar; letters, not colors alone,
// so that it reads everywhere.
func sectionMark(name string) string {
	marks := map[string]string{
		"system": "S", "tools": "T", "summary": "▒", "pinned": "P", "tail": "█", "run": "R", "reserve": "·", "free": " ",
	}
	if m, ok := marks[name]; ok {
		return m
	}
	return "?"
}

// DrawContext draws a context report: the window as a bar by section, the
// triggers, coverage and the last summaries (B5, C5).
func DrawContext(w io.Writer, r core.ContextReport, now time.Time) {
	fmt.Fprintf(w, "%s · policy %s · %s of %s tokens used (%d%%) · %s\n", r.Model, r.Policy,
		thousands(r.Used), thousands(r.Usable), percent(r.Used, r.Usable), calibration(r.Calibration))
	fmt.Fprintf(w, "[%s]\n", bar(r))
	for _, s := range r.Sections {
		if s.Tokens == 0 && s.Name != "free" {
			continue
		}
		fmt.Fprintf(w, "  %s %-8s %9s tokens", sectionMark(s.Name), s.Name, thousands(s.Tokens))
		if s.Messages > 0 {
			fmt.Fprintf(w, "  %s", plural(s.Messages, "message"))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	for _, t := range r.Triggers {
		fmt.Fprintf(w, "  %-22s %s %s of %s (%d%%)\n", triggerTitle(t.Name), progress(t.Percent), thousands(t.Value), thousands(t.Threshold), t.Percent)
	}
	if r.WillTrigger {
		fmt.Fprintln(w, "  summarization will trigger on the next message")
	}
	for _, reason := range r.Reasons {
		fmt.Fprintf(w, "  ! %s\n", reason)
	}
	fmt.Fprintf(w, "  %s\n", coverage(r.Coverage))
	drawSummaries(w, r.Summaries, now)
}

// drawSummaries lists the newest versions, the active one first.
func drawSummaries(w io.Writer, list []core.Summary, now time.Time) {
	if len(list) == 0 {
		fmt.Fprintln(w, "  no summary yet")
		return
	}
	for i, s := range list {
		title := "earlier"
		if i == 0 {
			title = "summary"
		}
		fmt.Fprintf(w, "  %s v%d: %s → %s tokens, %s, %s, %s ago\n", title, s.Version,
			plural(s.MessagesCovered, "message"), thousands(s.TokenCount), s.Trigger, s.Strategy, ago(now.Sub(s.CreatedAt)))
	}
}

// bar draws the window: every section gets its share, at least one character.
func bar(r core.ContextReport) string {
	var b strings.Builder
	left := barWidth
	for _, s := range r.Sections {
		if s.Name == "free" || s.Name == "reserve" || s.Tokens == 0 {
			continue
		}
		n := min(max(s.Tokens*barWidth/max(r.Window, 1), 1), left)
		b.WriteString(strings.Repeat(sectionMark(s.Name), n))
		left -= n
	}
	reserve := min(r.Reserve*barWidth/max(r.Window, 1), left)
	b.WriteString(strings.Repeat(" ", left-reserve))
	b.WriteString(strings.Repeat(sectionMark("reserve"), reserve))
	return b.String()
}

func progress(percent int) string {
	const width = 20
	n := min(max(percent*width/100, 0), width)
	return "[" + strings.Repeat("#", n) + strings.Repeat("-", width-n) + "]"
}

func triggerTitle(name string) string {
	titles := map[string]string{
		"share": "tokens in the prompt", "messages": "messages since summary",
		"tokens": "tokens since summary", "unsummarized": "messages, hard limit",
	}
	if t, ok := titles[name]; ok {
		return t
	}
	return name
}

func calibration(c core.CalibrationView) string {
	if c.Measured {
		return fmt.Sprintf("measured ± %.0f%%", c.Deviation*100)
	}
	return "estimated"
}

func coverage(c core.Coverage) string {
	parts := []string{fmt.Sprintf("%d summarized", c.Summarized), fmt.Sprintf("%d verbatim", c.Verbatim)}
	for _, p := range []struct {
		n    int
		name string
	}{{c.Masked, "masked"}, {c.Shortened, "shortened"}, {c.LeftOut, "left out"}, {c.Excluded, "excluded"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.name))
		}
	}
	return fmt.Sprintf("%s: %s, %d lost", plural(c.Messages, "message"), strings.Join(parts, ", "), c.Lost)
}

// thousands writes a number with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func percent(n, of int) int {
	if of <= 0 {
		return 0
	}
	return n * 100 / of
}

// plural writes a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

// ago writes a duration as people say it.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
