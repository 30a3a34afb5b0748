package demo

import (
	"context"
	"time"
	"unicode"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// speaker gives an answer to the caller at the pace of somebody who writes.
type speaker struct {
	ctx   context.Context // of one Stream call, which the speaker does not outlive
	delay time.Duration
	yield func(llm.Delta, error) bool
}

// say yields the text word by word. It reports whether to go on: neither did the
// caller leave, nor is ctx done, which it tells the caller.
func (s speaker) say(text string) bool {
	for _, word := range words(text) {
		if !s.pause() || !s.yield(llm.Delta{Text: word}, nil) {
			return false
		}
	}
	return true
}

// call yields the tool calls, each in two pieces as providers do.
func (s speaker) call(calls []core.ToolCall) bool {
	for i, c := range calls {
		pieces := []llm.ToolCallDelta{{Index: i, ID: c.ID, Name: c.Name}, {Index: i, Arguments: c.Arguments}}
		for _, p := range pieces {
			if !s.pause() || !s.yield(llm.Delta{ToolCall: &p}, nil) {
				return false
			}
		}
	}
	return true
}

// pause waits for the delay.
func (s speaker) pause() bool {
	if s.delay > 0 && s.ctx.Err() == nil {
		timer := time.NewTimer(s.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-s.ctx.Done():
		}
	}
	if s.ctx.Err() != nil {
		s.yield(llm.Delta{}, llm.CanceledError(s.ctx, name))
		return false
	}
	return true
}

// words splits the text after each run of blanks; together they are the text.
func words(text string) []string {
	var out []string
	start, blank := 0, false
	for i, r := range text {
		if blank && !unicode.IsSpace(r) {
			out = append(out, text[start:i])
			start = i
		}
		blank = unicode.IsSpace(r)
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}
