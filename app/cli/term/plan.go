package term

import (
	"fmt"
	"io"
	"strings"
	"time"

	"bobbin/app/core"
)

// DrawPlan draws a dry run: whether the prompt fits, what would be summarized, and the
// resulting context.
func DrawPlan(w io.Writer, p core.ContextPlan, now time.Time, width int) {
	d := drawing{w: w, width: width}
	switch {
	case p.Floor != nil:
		d.writeLine("it does not fit: %s", p.Floor.Detail)
	case p.Summarize != nil && p.Summarize.When == core.WhenNow:
		d.writeLine("it fits, after a summary: then the prompt has at most %s tokens", core.Number(p.Tokens))
	default:
		d.writeLine("it fits: the prompt has %s tokens", core.Number(p.Tokens))
	}
	if p.Activate > 0 {
		d.writeLine("  first, version %d of the summary, which is ready, becomes active", p.Activate)
	}
	if s := p.Summarize; s != nil {
		d.writeLine("  %s: %s (#%d to #%d), %s → at most %s tokens, trigger: %s", whenName(s.When), Pluralize(s.Messages, "message"), s.FromSeq, s.ThroughSeq,
			core.Number(s.Tokens), core.Number(s.MaxTokens), s.Trigger)
	}
	fmt.Fprintln(w)
	DrawContext(w, p.Context, now, width)
}

// whenName returns in words when something is summarized.
func whenName(when string) string {
	names := map[string]string{
		core.WhenNow: "summarized first", core.WhenBackground: "summarized in the background",
		core.WhenAfterRun: "summarized after the answer", core.WhenAhead: "summarized ahead of time, active when a trigger fires",
	}
	if name, ok := names[when]; ok {
		return name
	}
	return when
}

// DrawPrompt draws a complete prompt as it would be sent.
func DrawPrompt(w io.Writer, p core.PromptView, width int) {
	d := drawing{w: w, width: width}
	d.writeLine("%s · %s tokens · answers up to %s tokens", p.Model, core.Number(p.Tokens), core.Number(p.MaxOutputTokens))
	if p.Note != "" {
		d.writeLine("  ! %s", p.Note)
	}
	for _, block := range p.System {
		d.drawPart("system", block)
	}
	for _, m := range p.Messages {
		title := fmt.Sprintf("%s · %s tokens", m.Role, core.Number(m.Tokens))
		if m.Placement != core.PlaceVerbatim && m.Placement != "" {
			title += " · " + placeName(m.Placement)
		}
		text := m.Content
		for _, call := range m.ToolCalls {
			text = strings.TrimLeft(text+"\n→ "+call.Name+" "+call.Arguments, "\n")
		}
		for _, tool := range m.AddedTools {
			text = strings.TrimLeft(text+"\n+ tool "+tool.Name, "\n")
		}
		for _, name := range m.RemovedTools {
			text = strings.TrimLeft(text+"\n− tool "+name, "\n")
		}
		for _, media := range m.Media {
			text += fmt.Sprintf("\n[%s %s]", media.MediaType, media.Name)
		}
		d.drawPart(title, text)
	}
	var names []string
	for _, tool := range p.Tools {
		names = append(names, tool.Name)
	}
	if len(names) > 0 {
		d.drawPart("tools", strings.Join(names, ", "))
	}
}

// drawPart draws a part of a prompt below its title.
func (d drawing) drawPart(title, text string) {
	fmt.Fprintln(d.w)
	d.writeLine("── %s", title)
	fmt.Fprintln(d.w, Wrap(strings.TrimRight(text, "\n"), d.width, ""))
}
