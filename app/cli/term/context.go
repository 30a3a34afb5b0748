package term

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"bobbin/app/core"
)

// barWidth is the width of the window's bar, in characters, if there is room for it.
const barWidth = 60

// sectionMark returns the character of a section in the bar: not a color, so that it is
// readable everywhere.
func sectionMark(name string) string {
	return cmp.Or(map[string]string{
		"system": "S", "tools": "T", "summary": "▒", "pinned": "P", "standing": "I", "tail": "█", "recalled": "Q", "run": "R", "reserve": "·", "free": " ",
	}[name], "?")
}

// DrawContext draws a context report: the window as a bar by section, the triggers, coverage
// and recent summaries. Width is the terminal's width, 0 if there is none.
func DrawContext(w io.Writer, r core.ContextReport, now time.Time, width int) {
	d := drawing{w: w, width: width}
	how := "estimated"
	if r.Calibration.Measured {
		how = "measured"
	}
	share := 0
	if r.Usable > 0 {
		share = r.Used * 100 / r.Usable
	}
	d.writeLine("%s · policy %s · %s of %s tokens used (%d%%) · %s", r.Model, r.Policy,
		core.Number(r.Used), core.Number(r.Usable), share, fmt.Sprintf("%s ± %.0f%%", how, r.Calibration.Deviation*100))
	switch r.WindowFrom {
	case "provider":
		d.writeLine("window %s, learned from a provider error (context_window in models overrides it)", core.Number(r.Window))
	case "default":
		d.writeLine("window %s, assumed for an unknown model (context_window in models sets it)", core.Number(r.Window))
	}
	d.drawSections(r)
	d.writeLine("")
	d.drawTriggers(r)
	for _, reason := range r.Reasons {
		d.writeLine("  ! %s", reason)
	}
	d.writeLine("  %s", describeCoverage(r.Coverage))
	if r.Thoughts != nil {
		t := *r.Thoughts
		text := fmt.Sprintf("%s of the model's reasoning sent", Pluralize(t.Kept, "earlier block"))
		for _, group := range t.Dropped {
			text += fmt.Sprintf("; %d not: %s", group.Count, group.Detail)
		}
		d.writeLine("  %s", text)
	}
	d.drawInstructions(r.StandingInstructions)
	d.drawBreaker(r, now)
	switch {
	case r.Summarizing && r.Since != nil:
		d.writeLine("  summarizing, for %s now", max(now.Sub(*r.Since).Round(time.Second), 0))
	case r.Summarizing:
		d.writeLine("  summarizing")
	}
	if r.SummaryReason != "" {
		d.writeLine("  %s", r.SummaryReason)
	}
	if len(r.Versions) > 1 {
		names := make([]string, len(r.Versions))
		for i, v := range r.Versions {
			names[i] = fmt.Sprintf("%d (%s)", v.Version, Pluralize(v.Messages, "message"))
		}
		d.writeLine("  versions that prompts can use: %s", strings.Join(names, ", "))
	}
	if r.Prepared != nil {
		d.writeLine("  %s", describeVersion(*r.Prepared, now))
	}
	d.drawSummaries(r.Summaries, now)
}

type drawing struct {
	w     io.Writer
	width int
}

// drawSections draws the window as a bar, and the size of each section.
func (d drawing) drawSections(r core.ContextReport) {
	size := barWidth
	if d.width > 0 {
		size = min(barWidth, max(d.width-4, 10))
	}
	var bar strings.Builder // every section gets its share, but at least one character
	left := size
	for _, s := range r.Sections {
		if s.Name == "free" || s.Name == "reserve" || s.Tokens == 0 {
			continue
		}
		n := min(max(s.Tokens*size/max(r.Window, 1), 1), left)
		bar.WriteString(strings.Repeat(sectionMark(s.Name), n))
		left -= n
	}
	reserve := min(r.Reserve*size/max(r.Window, 1), left)
	d.writeLine("[%s%s%s]", &bar, strings.Repeat(" ", left-reserve), strings.Repeat(sectionMark("reserve"), reserve))
	for _, s := range r.Sections {
		if s.Tokens == 0 && s.Name != "free" {
			continue
		}
		messages := ""
		if s.Messages > 0 {
			noun := "message"
			if s.Name == "standing" {
				noun = "instruction"
			}
			messages = "  " + Pluralize(s.Messages, noun)
		}
		d.writeLine("  %s %-8s %9s tokens%s", sectionMark(s.Name), s.Name, core.Number(s.Tokens), messages)
	}
}

// writeLine writes a line and wraps it if it is too long.
func (d drawing) writeLine(format string, args ...any) {
	fmt.Fprintln(d.w, Wrap(fmt.Sprintf(format, args...), d.width, "    "))
}

// drawTriggers shows how close the next summary is.
func (d drawing) drawTriggers(r core.ContextReport) {
	switch len(r.Triggers) {
	case 0:
		d.writeLine("  no trigger: this policy does not summarize automatically")
	case 1:
		d.writeLine("  the next summary starts when this is full:")
	default:
		d.writeLine("  the next summary starts when one of these is full:")
	}
	titles := map[string]string{
		"share": "tokens in the prompt", "messages": "messages since summary",
		"tokens": "tokens since summary", "unsummarized": "messages, hard limit",
		"iterations": "tool rounds since notes", "loop_tokens": "tokens in the prompt, tool loop",
	}
	for _, t := range r.Triggers {
		value := fmt.Sprintf("%s of %s (%d%%)", core.Number(t.Value), core.Number(t.Threshold), t.Percent)
		width := 20
		n := min(max(t.Percent*width/100, 0), width)
		d.writeLine("  %-22s %s %s", cmp.Or(titles[t.Name], t.Name), "["+strings.Repeat("#", n)+strings.Repeat("-", width-n)+"]", value)
	}
	switch what := "until then"; {
	case r.WillTrigger:
		d.writeLine("  summarization will trigger on the next message")
	case r.TurnsLeft != nil:
		if len(r.Triggers) == 0 {
			what = "until the window is full"
		}
		d.writeLine("  about %s %s, at the current rate", Pluralize(*r.TurnsLeft, "more turn"), what)
	}
}

// drawBreaker shows whether summaries are working.
func (d drawing) drawBreaker(r core.ContextReport, now time.Time) {
	pause := "for a while"
	if r.OpenUntil != nil {
		pause = fmt.Sprintf("for another %s", max(r.OpenUntil.Sub(now).Round(time.Second), 0))
	}
	switch {
	case r.Breaker == "":
	case r.Breaker != "closed":
		d.writeLine("  ! summaries: failing repeatedly, paused %s (breaker %s)", pause, r.Breaker)
	case r.Failure != "":
		d.writeLine("  summaries: normal, but the last one failed")
	default:
		d.writeLine("  summaries: normal")
	}
	if r.Failure != "" {
		d.writeLine("    %s", r.Failure)
	}
}

func (d drawing) drawSummaries(list []core.Summary, now time.Time) {
	if len(list) == 0 {
		d.writeLine("  no summary yet")
		return
	}
	for _, s := range list {
		d.writeLine("  %s", describeVersion(s, now))
	}
}

// describeVersion describes a version: what it covers, its size, its trigger and its age.
func describeVersion(s core.Summary, now time.Time) string {
	title, ok := map[core.SummaryState]string{
		core.SummaryActive: "summary", core.SummaryPrepared: "ready", core.SummaryErased: "erased", core.SummaryUndone: "undone",
	}[s.State]
	if !ok {
		title = "earlier"
	}
	messages, before := s.MessagesCovered, ""
	if s.Kind == core.SummaryRun {
		title, messages = title+" (tool calls)", s.MessagesAdded
	}
	if s.TokensBefore > 0 && s.TokensBefore != s.TokenCount {
		before = fmt.Sprintf(" (%s before)", core.Number(s.TokensBefore))
	}
	text := fmt.Sprintf("%s v%d: %s → %s cl100k tokens%s", title, s.Version, Pluralize(messages, "message"), core.Number(s.TokenCount), before)
	when := ""
	if !s.CreatedAt.IsZero() {
		when = formatAge(now.Sub(s.CreatedAt)) + " ago"
	}
	for _, word := range []string{s.Trigger, s.Strategy, when} {
		if word != "" {
			text += ", " + word
		}
	}
	if s.MessagesShortened > 0 {
		text += fmt.Sprintf(" (%s shortened to fit the summary model)", Pluralize(s.MessagesShortened, "message"))
	}
	if s.ThroughSeq < s.OrderedSeq {
		text += fmt.Sprintf(" (through #%d of #%d)", s.ThroughSeq, s.OrderedSeq)
	}
	if s.Note != "" {
		text += " (" + s.Note + ")"
	}
	return text
}

func describeCoverage(c core.Coverage) string {
	parts := []string{fmt.Sprintf("%d summarized", c.Summarized), fmt.Sprintf("%d verbatim", c.Verbatim)}
	for _, p := range []struct {
		n    int
		name string
	}{{c.Compacted, "in notes"}, {c.Masked, "masked"}, {c.Shortened, "shortened"}, {c.LeftOut, "left out"}, {c.Excluded, "excluded"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.name))
		}
	}
	return fmt.Sprintf("%s: %s, %d lost", Pluralize(c.Messages, "message"), strings.Join(parts, ", "), c.Lost)
}

// Pluralize returns a count with its noun, such as 1 memory or 1,200 memories.
func Pluralize(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return core.Number(n) + " " + stem + "ies"
	}
	return core.Number(n) + " " + noun + "s"
}

// formatAge formats a duration roughly, as one number and a unit.
func formatAge(d time.Duration) string {
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
