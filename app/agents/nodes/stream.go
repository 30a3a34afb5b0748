package nodes

import (
	"context"

	"bobbin/app/agents/state"
	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// streamer passes a model's words on to the watchers as they come.
type streamer struct {
	journal   journal
	run       core.Run
	id        core.MessageID
	text      int // bytes said so far
	reasoning int
}

func newStreamer(journal journal, s state.AgentState, id core.MessageID) *streamer {
	return &streamer{journal: journal, run: s.Run, id: id}
}

// delta passes one piece on.
func (s *streamer) delta(ctx context.Context, d llm.Delta) {
	s.say(ctx, core.EventReasoningDelta, d.Reasoning, &s.reasoning)
	s.say(ctx, core.EventMessageDelta, d.Text, &s.text)
}

func (s *streamer) say(ctx context.Context, kind core.EventType, text string, offset *int) {
	if text == "" {
		return
	}
	s.journal.Delta(ctx, core.NewEvent(s.run.SessionID, s.run.ID, kind, core.DeltaData{
		MessageID: s.id, Attempt: s.run.Attempt, Offset: *offset, Text: text,
	}))
	*offset += len(text)
}
