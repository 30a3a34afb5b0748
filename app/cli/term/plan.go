package term

import (
	"fmt"
	"io"
	"strings"
	"time"

	"bobbin/app/core"
)

// DrawPlan draws a dry run: whether it fits, what would be summarized, and the
// context as it would be.
func DrawPlan(w io.Writer, p core.ContextPlan, now time.Time, width int) {
	d := drawing{w: w, width: width}
	switch {
	case p.Floor != nil:
		d.line("it does not fit: %s", p.Floor.Detail)
	case p.Summarize != nil && p.Summarize.When == core.WhenNow:
		d.line("it fits, after a summary: then the prompt has at most %s tokens", Number(p.Tokens))
	default:
		d.line("it fits: the prompt has %s tokens", Number(p.Tokens))
	}
	if p.Activate > 0 {
		d.line("  version %d of the summary, which is ready, comes into use first", p.Activate)
	}
	if s := p.Summarize; s != nil {
		d.line("  %s: %s (#%d to #%d), %s → at most %s tokens, because of %s", whenName(s.When), plural(s.Messages, "message"), s.FromSeq, s.ThroughSeq,
			Number(s.Tokens), Number(s.MaxTokens), s.Trigger)
	}
	fmt.Fprintln(w)
	DrawContext(w, p.Context, now, width)
}

// whenName says when something is summarized.
func whenName(when string) string {
	names := map[string]string{
		core.WhenNow: "summarized first", core.WhenBackground: "summarized in the background",
		core.WhenAfterRun: "summarized after the answer", core.WhenAhead: "summarized ahead, in use when a trigger fires",
	}
	if name, ok := names[when]; ok {
		return name
	}
	return when
}

// DrawPrompt draws a prompt as it would be sent, whole.
func DrawPrompt(w io.Writer, p core.PromptView, width int) {
	d := drawing{w: w, width: width}
	d.line("%s · %s tokens · answers of at most %s", p.Model, Number(p.Tokens), Number(p.MaxOutputTokens))
	if p.Note != "" {
		d.line("  ! %s", p.Note)
	}
	for _, block := range p.System {
		d.part("system", block)
	}
	for _, m := range p.Messages {
		title := fmt.Sprintf("%s · %s tokens", m.Role, Number(m.Tokens))
		if m.Placement != core.PlaceVerbatim && m.Placement != "" {
			title += " · " + placeName(m.Placement)
		}
		text := m.Content
		for _, call := range m.ToolCalls {
			text = strings.TrimLeft(text+"\n→ "+call.Name+" "+call.Arguments, "\n")
		}
		for _, image := range m.Images {
			text += fmt.Sprintf("\n[%s %s]", image.MediaType, image.Name)
		}
		d.part(title, text)
	}
	var names []string
	for _, tool := range p.Tools {
		names = append(names, tool.Name)
	}
	if len(names) > 0 {
		d.part("tools", strings.Join(names, ", "))
	}
}

// part writes a part of a prompt below its title.
func (d drawing) part(title, text string) {
	fmt.Fprintln(d.w)
	d.line("── %s", title)
	fmt.Fprintln(d.w, Wrap(strings.TrimRight(text, "\n"), d.width, ""))
}
