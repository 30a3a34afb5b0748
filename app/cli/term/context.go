package term

import (
	"fmt"
	"io"
	"strings"
	"time"

	"bobbin/app/core"
)

// barWidth is the width of the window's picture, in characters, where there is room.
const barWidth = 60

// sectionMark is how a section looks in the bar: letters, not colors, so that it
// reads everywhere.
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
// triggers, coverage and the last summaries (B5, C5). Width is that of the
// terminal, 0 if there is none.
func DrawContext(w io.Writer, r core.ContextReport, now time.Time, width int) {
	d := drawing{w: w, width: width, narrow: width > 0 && width < barWidth+4}
	d.line("%s · policy %s · %s of %s tokens used (%d%%) · %s", r.Model, r.Policy,
		Number(r.Used), Number(r.Usable), percent(r.Used, r.Usable), calibration(r.Calibration))
	if note := windowNote(r); note != "" {
		d.line("%s", note)
	}
	size := barWidth
	if d.narrow {
		size = max(width-4, 10)
	}
	d.line("[%s]", bar(r, size))
	d.sections(r.Sections)
	d.line("")
	d.triggers(r)
	for _, reason := range r.Reasons {
		d.line("  ! %s", reason)
	}
	d.line("  %s", coverage(r.Coverage))
	d.breaker(r, now)
	if r.Summarizing {
		d.line("  a summary is being made")
	}
	if r.Prepared != nil {
		d.line("  %s", version(*r.Prepared, now))
	}
	d.summaries(r.Summaries, now)
}

// drawing is a report on its way to the screen.
type drawing struct {
	w      io.Writer
	width  int
	narrow bool
}

// line writes a line, wrapped where it is too long.
func (d drawing) line(format string, args ...any) {
	fmt.Fprintln(d.w, Wrap(fmt.Sprintf(format, args...), d.width, "    "))
}

func (d drawing) sections(parts []core.ContextPart) {
	for _, s := range parts {
		if s.Tokens == 0 && s.Name != "free" {
			continue
		}
		messages := ""
		if s.Messages > 0 {
			messages = "  " + plural(s.Messages, "message")
		}
		form := "  %s %-8s %9s tokens%s"
		if d.narrow {
			form = "  %s %-7s %7s tokens%s"
		}
		d.line(form, sectionMark(s.Name), s.Name, Number(s.Tokens), messages)
	}
}

// triggers shows how near the next summary is.
func (d drawing) triggers(r core.ContextReport) {
	switch len(r.Triggers) {
	case 0:
		d.line("  no trigger: this policy makes no summaries by itself")
	case 1:
		d.line("  the next summary is made when this is full:")
	default:
		d.line("  the next summary is made when one of these is full:")
	}
	for _, t := range r.Triggers {
		value := fmt.Sprintf("%s of %s (%d%%)", Number(t.Value), Number(t.Threshold), t.Percent)
		if d.narrow {
			d.line("  %s", triggerTitle(t.Name))
			d.line("  %s %s", progress(t.Percent, 10), value)
			continue
		}
		d.line("  %-22s %s %s", triggerTitle(t.Name), progress(t.Percent, 20), value)
	}
	switch what := "until then"; {
	case r.WillTrigger:
		d.line("  summarization will trigger on the next message")
	case r.TurnsLeft != nil:
		if len(r.Triggers) == 0 {
			what = "until the window is full"
		}
		d.line("  about %s %s, at the present rate", plural(*r.TurnsLeft, "more turn"), what)
	}
}

// breaker says whether the summary model is asked.
func (d drawing) breaker(r core.ContextReport, now time.Time) {
	rests := "for a while"
	if r.OpenUntil != nil {
		rests = fmt.Sprintf("for another %s", max(r.OpenUntil.Sub(now).Round(time.Second), 0))
	}
	switch {
	case r.Breaker == "":
	case r.Breaker != "closed":
		d.line("  ! breaker %s: making summaries failed again and again, and rests %s", r.Breaker, rests)
	case r.Failure != "":
		d.line("  breaker closed: summaries are made when they are due, though the last one failed")
	default:
		d.line("  breaker closed: summaries are made when they are due")
	}
	if r.Failure != "" {
		d.line("    %s", r.Failure)
	}
}

// summaries lists the newest versions.
func (d drawing) summaries(list []core.Summary, now time.Time) {
	if len(list) == 0 {
		d.line("  no summary yet")
		return
	}
	for _, s := range list {
		d.line("  %s", version(s, now))
	}
}

// version says of a version what it covers, what it made of that, why and when.
func version(s core.Summary, now time.Time) string {
	title, ok := map[core.SummaryState]string{
		core.SummaryActive: "summary", core.SummaryPrepared: "ready", core.SummaryErased: "erased", core.SummaryUndone: "undone",
	}[s.State]
	if !ok {
		title = "earlier"
	}
	messages, before := s.MessagesCovered, ""
	if s.Kind == core.SummaryRun {
		title, messages = title+", of a run's tools,", s.MessagesAdded
	}
	if s.TokensBefore > 0 && s.TokensBefore != s.TokenCount {
		before = fmt.Sprintf(" (%s before)", Number(s.TokensBefore))
	}
	text := fmt.Sprintf("%s v%d: %s → %s tokens%s", title, s.Version, plural(messages, "message"), Number(s.TokenCount), before)
	when := ""
	if !s.CreatedAt.IsZero() {
		when = ago(now.Sub(s.CreatedAt)) + " ago"
	}
	for _, word := range []string{s.Trigger, s.Strategy, when} {
		if word != "" {
			text += ", " + word
		}
	}
	if s.Note != "" {
		text += " (" + s.Note + ")"
	}
	return text
}

// bar draws the window in size characters: every section gets its share, at least
// one character.
func bar(r core.ContextReport, size int) string {
	var b strings.Builder
	left := size
	for _, s := range r.Sections {
		if s.Name == "free" || s.Name == "reserve" || s.Tokens == 0 {
			continue
		}
		n := min(max(s.Tokens*size/max(r.Window, 1), 1), left)
		b.WriteString(strings.Repeat(sectionMark(s.Name), n))
		left -= n
	}
	reserve := min(r.Reserve*size/max(r.Window, 1), left)
	b.WriteString(strings.Repeat(" ", left-reserve))
	b.WriteString(strings.Repeat(sectionMark("reserve"), reserve))
	return b.String()
}

func progress(percent, width int) string {
	n := min(max(percent*width/100, 0), width)
	return "[" + strings.Repeat("#", n) + strings.Repeat("-", width-n) + "]"
}

func triggerTitle(name string) string {
	titles := map[string]string{
		"share": "tokens in the prompt", "messages": "messages since summary",
		"tokens": "tokens since summary", "unsummarized": "messages, hard limit",
		"iterations": "tool rounds since notes", "loop_tokens": "tokens in the prompt, tool loop",
	}
	if t, ok := titles[name]; ok {
		return t
	}
	return name
}

func calibration(c core.CalibrationView) string {
	how := "estimated"
	if c.Measured {
		how = "measured"
	}
	return fmt.Sprintf("%s ± %.0f%%", how, c.Deviation*100)
}

// windowNote says where the window comes from, if that is news.
func windowNote(r core.ContextReport) string {
	switch r.WindowFrom {
	case "provider":
		return fmt.Sprintf("window %s, as the provider said (context_window in models sets another)", Number(r.Window))
	case "default":
		return fmt.Sprintf("window %s, assumed: the model is not known (context_window in models sets it)", Number(r.Window))
	default:
		return ""
	}
}

func coverage(c core.Coverage) string {
	parts := []string{fmt.Sprintf("%d summarized", c.Summarized), fmt.Sprintf("%d verbatim", c.Verbatim)}
	for _, p := range []struct {
		n    int
		name string
	}{{c.Compacted, "in notes"}, {c.Masked, "masked"}, {c.Shortened, "shortened"}, {c.LeftOut, "left out"}, {c.Excluded, "excluded"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.name))
		}
	}
	return fmt.Sprintf("%s: %s, %d lost", plural(c.Messages, "message"), strings.Join(parts, ", "), c.Lost)
}

// Number writes a number with commas.
func Number(n int) string {
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
	return Number(n) + " " + noun + "s"
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
