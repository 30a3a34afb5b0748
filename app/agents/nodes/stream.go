package nodes

import (
	"cmp"
	"context"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// passDeltas returns what passes a model's words on to the watchers as they come, as those of the
// message; with calls also the arguments of calls of the client's tools.
func (n *LLM) passDeltas(ctx context.Context, s AgentState, id core.MessageID, calls bool) func(llm.Delta) {
	parent := s.UserMessage.ID // the message that comes before it
	if last := len(s.RunMessages); last > 0 {
		parent = s.RunMessages[last-1].ID
	}
	pass := func(t *passedText, text string) {
		if text == "" {
			return
		}
		n.Journal.Delta(ctx, core.NewEvent(s.Run.SessionID, s.Run.ID, t.kind, core.DeltaData{
			MessageID: id, ParentID: parent, Attempt: s.Run.Attempt, Offset: t.bytes, OffsetUTF16: t.utf16, Text: text, DeltaCall: t.call,
		}))
		t.bytes, t.utf16 = t.bytes+len(text), t.utf16+core.UTF16Len(text)
	}
	reasoning, text := &passedText{kind: core.EventReasoningDelta}, &passedText{kind: core.EventMessageDelta}
	passed, queued := passedCalls{}, false
	return func(d llm.Delta) {
		if d.Queued != queued {
			queued = d.Queued
			n.Journal.Delta(ctx, core.NewEvent(s.Run.SessionID, s.Run.ID, core.EventNodeStarted, core.NodeData{Node: map[bool]string{true: core.NodeModelSlot, false: NameLLM}[queued]}))
		}
		pass(reasoning, d.Reasoning)
		pass(text, d.Text)
		if calls && d.ToolCall != nil {
			if t := passed.textOf(s, *d.ToolCall); t != nil {
				pass(t, d.ToolCall.Arguments)
			}
		}
	}
}

// passedText is a text that is passed on, and where its next piece begins.
type passedText struct {
	kind         core.EventType
	call         *core.DeltaCall // whose arguments it is; nil = none
	bytes, utf16 int
}

// passedCalls are the arguments of an answer's calls, by the index of the call; nil = they are not passed on.
type passedCalls struct {
	texts map[int]*passedText
	used  map[string]bool // ids of calls
}

// textOf returns the arguments that the piece extends; nil if they are not passed on: the tool is the
// server's, or the call has no id yet, or will be stored with another one.
func (p *passedCalls) textOf(s AgentState, piece llm.ToolCallDelta) *passedText {
	t, begun := p.texts[piece.Index]
	if begun {
		return t
	}
	if p.texts == nil {
		p.texts, p.used = map[int]*passedText{}, usedCallIDs(s.History, s.RunMessages)
	}
	if s.Run.HasClientTool(piece.Name) && !p.used[piece.ID] {
		t = &passedText{kind: core.EventArgumentsDelta, call: &core.DeltaCall{ToolCallID: piece.ID, Name: piece.Name}}
	}
	p.texts[piece.Index], p.used[piece.ID] = t, true
	return t
}

// sendableCalls returns the calls as every later prompt can hold them: with names that
// providers take, and with an id of their own. Some providers number the calls
// anew in every answer, or not at all, and a model may make a name up.
func sendableCalls(calls []core.ToolCall, before ...[]core.Message) []core.ToolCall {
	used := usedCallIDs(before...)
	for i := range calls {
		if used[calls[i].ID] {
			calls[i].ID = "call_" + core.NewID[string]()
		}
		used[calls[i].ID] = true
		calls[i].Name = cmp.Or(tools.FitName(calls[i].Name), "unnamed")
	}
	return calls
}

// usedCallIDs returns the ids that no new call can have.
func usedCallIDs(before ...[]core.Message) map[string]bool {
	used := map[string]bool{"": true}
	for _, messages := range before {
		for _, m := range messages {
			for _, c := range m.ToolCalls {
				used[c.ID] = true
			}
		}
	}
	return used
}
