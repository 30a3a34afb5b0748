package nodes

import (
	"context"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// streamer passes a model's words on to the watchers as they come.
type streamer struct {
	journal   Recorder
	run       core.Run
	id        core.MessageID
	parent    core.MessageID // the message that comes before it
	text      position       // where the next piece begins
	reasoning position
}

// position is a place in a text, in bytes and in code units of UTF-16.
type position struct{ bytes, utf16 int }

func newStreamer(journal Recorder, s AgentState, id core.MessageID) *streamer {
	parent := s.UserMessage.ID
	if n := len(s.RunMessages); n > 0 {
		parent = s.RunMessages[n-1].ID
	}
	return &streamer{journal: journal, run: s.Run, id: id, parent: parent}
}

// passDelta passes one piece on.
func (s *streamer) passDelta(ctx context.Context, d llm.Delta) {
	s.sayText(ctx, core.EventReasoningDelta, d.Reasoning, &s.reasoning)
	s.sayText(ctx, core.EventMessageDelta, d.Text, &s.text)
}

func (s *streamer) sayText(ctx context.Context, kind core.EventType, text string, at *position) {
	if text == "" {
		return
	}
	s.journal.Delta(ctx, core.NewEvent(s.run.SessionID, s.run.ID, kind, core.DeltaData{
		MessageID: s.id, ParentID: s.parent, Attempt: s.run.Attempt, Offset: at.bytes, OffsetUTF16: at.utf16, Text: text,
	}))
	at.bytes += len(text)
	at.utf16 += core.UTF16Len(text)
}
