package responses

import (
	"encoding/json"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// answer reads one answer and emits it piece by piece.
type answer struct {
	providerhttp.Answer

	origin string // of the reasoning in it

	items map[int]*openedItem // by their places in the output
	calls int                 // so far
	last  *llm.Delta          // what is known only at the end; nil = the answer goes on
}

// openedItem is an item of the output on its way.
type openedItem struct {
	call     *int // the number of a tool call; nil = it is none, or has not begun
	streamed bool // its content came in pieces
	done     bool
}

// handleEvent handles one event.
func (a *answer) handleEvent(data []byte) error {
	var e event
	if err := providerhttp.Decode(data, &e); err != nil {
		return err
	}
	switch e.Type {
	case "error":
		return a.Refusal(data)
	case "response.output_item.added":
		return a.beginItem(e.OutputIndex, e.Item)
	case "response.output_text.delta", "response.refusal.delta":
		a.itemAt(e.OutputIndex).streamed = true
		return a.EmitDelta(llm.Delta{Text: e.Delta})
	case "response.reasoning_summary_part.added":
		if e.SummaryIndex > 0 {
			return a.EmitDelta(llm.Delta{Reasoning: summarySeparator})
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		a.itemAt(e.OutputIndex).streamed = true
		return a.EmitDelta(llm.Delta{Reasoning: e.Delta})
	case "response.function_call_arguments.delta":
		// A call whose beginning did not come is read when it is done.
		i := a.itemAt(e.OutputIndex)
		if i.call == nil || i.done || e.Delta == "" {
			return nil
		}
		i.streamed = true
		return a.EmitDelta(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: *i.call, Arguments: e.Delta}})
	case "response.output_item.done":
		return a.endItem(e.OutputIndex, e.Item)
	case "response.completed", "response.incomplete", "response.failed":
		if e.Response.Status == "" {
			e.Response.Status = strings.TrimPrefix(e.Type, "response.")
		}
		return a.end(e.Response)
	case "": // with which some servers report an error
		if providerhttp.Present(e.Error) {
			return a.Refusal(data)
		}
	}
	return nil
}

// itemAt returns the item at the place in the output.
func (a *answer) itemAt(index int) *openedItem {
	i := a.items[index]
	if i == nil {
		i = &openedItem{}
		a.items[index] = i
	}
	return i
}

// beginItem begins an item. Only tool calls say anything then.
func (a *answer) beginItem(index int, came item) error {
	i := a.itemAt(index)
	if came.Type != "function_call" || i.call != nil {
		return nil
	}
	number := a.calls
	a.calls++
	i.call = &number
	return a.EmitDelta(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: number, ID: a.UniqueCallID(came.CallID), Name: came.Name}})
}

// endItem emits what of an item did not come in pieces.
func (a *answer) endItem(index int, came item) error {
	i := a.itemAt(index)
	if i.done {
		return nil
	}
	i.done = true
	switch came.Type {
	case "message":
		if !i.streamed {
			if err := a.EmitDelta(llm.Delta{Text: contentText(came)}); err != nil {
				return err
			}
		}
		if came.Phase != "" { // an empty part at the end of the text: models that label their messages work worse without the labels
			return a.EmitDelta(llm.Delta{Part: &core.Part{Type: core.PartText, Name: came.Phase, Origin: a.origin}})
		}
	case "function_call":
		if err := a.beginItem(index, came); err != nil {
			return err
		}
		if !i.streamed && came.Arguments != "" {
			return a.EmitDelta(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: *i.call, Arguments: came.Arguments}})
		}
	case "reasoning":
		// Reasoning that was cut off, or is not encrypted, cannot go back and is only shown.
		texts := make([]string, 0, len(came.Summary))
		for _, s := range came.Summary {
			texts = append(texts, s.Text)
		}
		text := strings.Join(texts, summarySeparator)
		if text == "" {
			text = contentText(came)
		}
		if !i.streamed {
			if err := a.EmitDelta(llm.Delta{Reasoning: text}); err != nil {
				return err
			}
		}
		parts := []core.Part{{Type: "reasoning", Text: text}}
		switch {
		case came.EncryptedContent != "" && came.Status != "incomplete":
			parts = reasoningParts(came, a.origin)
		case text == "":
			return nil
		}
		for _, p := range parts {
			if err := a.EmitDelta(llm.Delta{Part: &p}); err != nil {
				return err
			}
		}
	}
	return nil
}

// contentText returns the text of a message, or of reasoning that is not encrypted.
func contentText(came item) string {
	var b strings.Builder
	parts, _ := came.Content.([]any)
	for _, one := range parts {
		members, _ := one.(map[string]any)
		said, _ := members["text"].(string)
		refusal, _ := members["refusal"].(string)
		b.WriteString(said + refusal)
	}
	return b.String()
}

// summarySeparator is between the texts of a summary where they are shown as one.
const summarySeparator = "\n\n"

// readWhole reads the answer of a server that did not stream.
func (a *answer) readWhole(text []byte) error {
	var r response
	if providerhttp.IgnoreType(json.Unmarshal(text, &r)) != nil || r.Object != "response" {
		return a.Refusal(text)
	}
	return a.end(r)
}

// end ends the answer, with the items that did not come before.
func (a *answer) end(r response) error {
	if hasCause := providerhttp.Present(r.Error); hasCause || r.Status == "failed" {
		if !hasCause {
			r.Error = json.RawMessage(`{"message":"the provider stopped with an error","type":"server_error"}`)
		}
		return a.Refusal(slices.Concat([]byte(`{"error":`), r.Error, []byte(`}`)))
	}
	for i, came := range r.Output {
		if err := a.endItem(i, came); err != nil {
			return err
		}
	}
	if r.Status != "completed" && r.Status != "incomplete" {
		return nil
	}
	var usage *core.Usage
	if u := r.Usage; u.InputTokens > 0 || u.OutputTokens > 0 {
		usage = &core.Usage{
			InputTokens: max(u.InputTokens, 0), OutputTokens: max(u.OutputTokens, 0), ReasoningTokens: max(u.OutputDetails.Reasoning, 0),
			CacheReadTokens: max(u.InputDetails.Cached, 0), CacheWriteTokens: max(u.InputDetails.CacheWrite, 0),
		}
	}
	a.last = &llm.Delta{Usage: usage, Finish: finishReason(r, a.calls > 0), Model: r.Model, Dropped: r.Dropped.ToCore()}
	return nil
}

// finishReason returns why the answer ended, in the words of core.
func finishReason(r response, called bool) core.FinishReason {
	switch reason := r.Incomplete.Reason; {
	case reason == "max_output_tokens":
		return core.FinishLength
	case reason != "": // content_filter, too
		return core.FinishReason(reason)
	case r.Status == "incomplete":
		return core.FinishLength
	case called:
		return core.FinishToolCalls
	default:
		return core.FinishStop
	}
}
