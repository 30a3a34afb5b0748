package runs

import (
	"slices"

	"bobbin/app/core"
)

// runState is the journal's state of a run that this process executes.
type runState struct {
	turn           chan struct{} // has one element while a write of the run is in progress
	attempt        int
	message        core.MessageID // being streamed; empty = none
	parent         core.MessageID // of the message
	text           []byte         // partial text of the message
	unsaved        bool           // it changed since it was saved
	ended          bool           // an end was written
	waiting        bool           // the wait was written
	lastEvent      int64          // of the session, if nobody else has added one since the run began; 0 = unknown
	lastMessage    core.MessageID // on the path, with lastEvent; empty = unknown
	moreQueued     bool           // the session may have a next run
	draftDiscarded bool           // the texts of earlier attempts are being retracted
}

// maxLost bounds how many lost attempts have their texts retracted again: one of them may have
// died before it could do so for earlier ones.
const maxLost = 16

// lostDrafts returns the messages of which earlier attempts may have shown a part: the saved
// one, and those that they would have written next, given the run's own messages as they are
// now.
func lostDrafts(run core.Run, saved core.MessageID, own []core.Message) []core.MessageID {
	var ids []core.MessageID
	for attempt := max(1, run.Attempt-maxLost); attempt < run.Attempt && !run.Resumed; attempt++ {
		ids = append(ids, run.DraftID(attempt, len(own)))
	}
	if saved != "" && !slices.Contains(ids, saved) {
		ids = append(ids, saved)
	}
	return slices.DeleteFunc(ids, func(id core.MessageID) bool { return containsMessage(own, id) })
}

// appendDelta adds a piece of the draft at its offset. A piece that leaves a gap is dropped:
// the text would be unreadable.
func (s *runState) appendDelta(kind core.EventType, d core.DeltaData) {
	if d.MessageID != s.message {
		s.message, s.parent, s.text = d.MessageID, d.ParentID, nil
	}
	s.unsaved = true
	if kind == core.EventMessageDelta && d.Offset >= 0 && d.Offset <= len(s.text) {
		s.text = append(s.text[:d.Offset], d.Text...)
	}
}

// applyDiscard drops the draft if the event retracts it.
func (s *runState) applyDiscard(e core.Event) {
	if d, ok := e.Data.(core.DiscardedData); ok {
		s.dropDraft(d.MessageID)
	}
}

// dropDraft drops the draft if it has the id.
func (s *runState) dropDraft(id core.MessageID) {
	if id == s.message {
		s.message, s.text, s.unsaved = "", nil, false
	}
}
