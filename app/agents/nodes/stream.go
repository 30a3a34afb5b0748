package nodes

import (
	"context"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// passDeltas returns what passes a model's words on to the watchers as they come, as those of the message.
func (n *LLM) passDeltas(ctx context.Context, s AgentState, id core.MessageID) func(llm.Delta) {
	parent := s.UserMessage.ID // the message that comes before it
	if last := len(s.RunMessages); last > 0 {
		parent = s.RunMessages[last-1].ID
	}
	var bytes, utf16 [2]int // where the next piece begins, of the thoughts and of the text
	return func(d llm.Delta) {
		for i, text := range [2]string{d.Reasoning, d.Text} {
			if text == "" {
				continue
			}
			n.Journal.Delta(ctx, core.NewEvent(s.Run.SessionID, s.Run.ID, [2]core.EventType{core.EventReasoningDelta, core.EventMessageDelta}[i], core.DeltaData{
				MessageID: id, ParentID: parent, Attempt: s.Run.Attempt, Offset: bytes[i], OffsetUTF16: utf16[i], Text: text,
			}))
			bytes[i], utf16[i] = bytes[i]+len(text), utf16[i]+core.UTF16Len(text)
		}
	}
}
