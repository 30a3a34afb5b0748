package runs

import (
	"encoding/json"
	"slices"

	"bobbin/app/core"
)

// execState is what the journal knows of a run that this process executes.
type execState struct {
	turn    chan struct{} // has one element while a write of the run is under way
	attempt int
	message core.MessageID // on its way; empty = none
	text    []byte         // of the message so far
	unsaved bool           // there is more than what was saved
	ended   bool           // an end was written
	waits   bool           // it was written that the run waits
	cleared bool           // the texts of the attempts before this one were taken back
}

// mostLost bounds how many lost attempts have their text taken back again: one of
// them may have died before it could do so for those before it.
const mostLost = 16

// lostTexts returns the messages that attempts before this one may have shown a
// part of: the one that was saved, and those that they were about to write as the
// run's own log is now.
func lostTexts(run core.Run, saved core.MessageID, own []core.Message) []core.MessageID {
	var ids []core.MessageID
	for attempt := max(1, run.Attempt-mostLost); attempt < run.Attempt && !run.Resumed; attempt++ {
		ids = append(ids, run.DraftID(attempt, len(own)))
	}
	if saved != "" && !slices.Contains(ids, saved) {
		ids = append(ids, saved)
	}
	return slices.DeleteFunc(ids, func(id core.MessageID) bool { return contains(own, id) })
}

// add puts a piece of the message on its way where it belongs. A piece that
// leaves a hole is dropped: it could not be read.
func (s *execState) add(kind core.EventType, d core.DeltaData) {
	if d.MessageID != s.message {
		s.message, s.text = d.MessageID, nil
	}
	s.unsaved = true
	if kind == core.EventMessageDelta && d.Offset >= 0 && d.Offset <= len(s.text) {
		s.text = append(s.text[:d.Offset], d.Text...)
	}
}

// discard drops the message that the event takes back, if it does.
func (s *execState) discard(e core.Event) {
	var d core.DiscardedData
	if e.Type == core.EventMessageDiscarded && json.Unmarshal(e.Data, &d) == nil {
		s.forget(d.MessageID)
	}
}

// forget drops the message if it is the one on its way.
func (s *execState) forget(id core.MessageID) {
	if id == s.message {
		s.message, s.text, s.unsaved = "", nil, false
	}
}
