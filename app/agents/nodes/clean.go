package nodes

import (
	"iter"
	"regexp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// cleanStream returns the stream with text that every database takes. It is cleaned
// before it is shown, so that what was streamed is what is stored, byte for byte.
// Models send whole characters: providers speak JSON.
func cleanStream(stream iter.Seq2[llm.Delta, error]) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for d, err := range stream {
			if !yield(cleanDelta(d), err) {
				return
			}
		}
	}
}

func cleanDelta(d llm.Delta) llm.Delta {
	d.Text, d.Reasoning = core.CleanText(d.Text), core.CleanText(d.Reasoning)
	d.Finish = core.FinishReason(core.CleanText(string(d.Finish)))
	d.Part, d.Compaction = cleanPart(d.Part), cleanPart(d.Compaction)
	if d.ToolCall != nil {
		c := *d.ToolCall
		c.ID, c.Name = core.CleanText(c.ID), core.CleanText(c.Name)
		c.Arguments, c.Signature = core.CleanText(c.Arguments), core.CleanText(c.Signature)
		d.ToolCall = &c
	}
	return d
}

func cleanPart(part *core.Part) *core.Part {
	if part == nil {
		return nil
	}
	p := *part
	p.Text, p.Name, p.Signature = core.CleanText(p.Text), core.CleanText(p.Name), core.CleanText(p.Signature)
	return &p
}

// sendableCalls returns the calls as every later prompt can hold them: with names that
// providers take, and with an id of their own. Some providers number the calls
// anew in every answer, or not at all.
func sendableCalls(calls []core.ToolCall, before ...[]core.Message) []core.ToolCall {
	used := map[string]bool{"": true}
	for _, messages := range before {
		for _, m := range messages {
			for _, c := range m.ToolCalls {
				used[c.ID] = true
			}
		}
	}
	for i := range calls {
		if used[calls[i].ID] {
			calls[i].ID = "call_" + core.NewID[string]()
		}
		used[calls[i].ID] = true
		calls[i].Name = toolName(calls[i].Name)
	}
	return calls
}

// unfit matches what providers do not take in the name of a function.
var unfit = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// maxToolName is the longest name that they take.
const maxToolName = 64

// toolName returns the name in letters that providers take. A model that makes a
// name up would otherwise make all later prompts of its session refused; the name
// of a tool that there is stays as it is.
func toolName(name string) string {
	if name == "" {
		return "unnamed"
	}
	return core.Clip(unfit.ReplaceAllString(name, "_"), maxToolName)
}
