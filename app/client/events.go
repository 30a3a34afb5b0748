package client

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"bobbin/app/core"
)

// errorEvent is the event by which the server ends a stream because of an error.
const errorEvent = "error"

// decode returns the event that a frame holds. An error event is a *ProblemError.
func decode(f frame) (core.Event, error) {
	if f.event == errorEvent {
		problem := &ProblemError{}
		if err := json.Unmarshal(f.data, problem); err != nil {
			return core.Event{}, fmt.Errorf("the server reported an error that cannot be read: %w", err)
		}
		return core.Event{}, problem
	}
	var head struct {
		SessionID core.SessionID `json:"session_id"`
		RunID     core.RunID     `json:"run_id"`
		At        time.Time      `json:"at"`
	}
	if err := json.Unmarshal(f.data, &head); err != nil {
		return core.Event{}, fmt.Errorf("event %s cannot be read: %w", f.event, err)
	}
	e := core.Event{SessionID: head.SessionID, RunID: head.RunID, At: head.At, Type: core.EventType(f.event), Data: f.data}
	if f.id != "" {
		seq, err := strconv.ParseInt(f.id, 10, 64)
		if err != nil || seq < 0 || seq == 0 && e.Type != core.EventResync {
			return core.Event{}, fmt.Errorf("event %s has the id %q, which is no number", f.event, f.id)
		}
		e.Seq = seq
	}
	return e, nil
}

// textKey names a text on its way.
type textKey struct {
	kind    core.EventType
	message core.MessageID
}

// progress is how far a stream has come. It sorts out what a new connection
// brings again.
type progress struct {
	after int64           // number of the last durable event, or unknown
	texts map[textKey]int // bytes of each text on its way
}

func newProgress(after int64) *progress {
	return &progress{after: after, texts: map[textKey]int{}}
}

// take returns the event with what is new of it, false if nothing is.
func (p *progress) take(e core.Event) (core.Event, bool, error) {
	switch {
	case e.Type == core.EventResync:
		// What comes next may have any number: that of another database.
		p.after = unknown
		if e.Seq > 0 {
			p.after = e.Seq
		}
		clear(p.texts)
	case e.Seq > 0 && e.Seq <= p.after:
		return e, false, nil
	case e.Seq > 0:
		p.after = e.Seq
		return e, true, p.finish(e)
	case e.Type == core.EventMessageDelta || e.Type == core.EventReasoningDelta:
		return p.text(e)
	}
	return e, true, nil
}

// text cuts off the beginning of a delta that was there before.
func (p *progress) text(e core.Event) (core.Event, bool, error) {
	var d core.DeltaData
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return e, false, fmt.Errorf("event %s cannot be read: %w", e.Type, err)
	}
	key := textKey{kind: e.Type, message: d.MessageID}
	have, end := p.texts[key], d.Offset+len(d.Text)
	if end <= have && len(d.Text) > 0 {
		return e, false, nil
	}
	p.texts[key] = max(end, have)
	if d.Offset >= have {
		return e, true, nil
	}
	d.Text, d.Offset = d.Text[have-d.Offset:], have
	data, err := json.Marshal(d)
	e.Data = data
	return e, true, err
}

// finish forgets the texts of a message that is whole now, or taken back.
func (p *progress) finish(e core.Event) error {
	var message core.MessageID
	switch e.Type {
	case core.EventMessageCreated:
		var d core.MessageData
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return fmt.Errorf("event %s cannot be read: %w", e.Type, err)
		}
		message = d.Message.ID
	case core.EventMessageDiscarded:
		var d core.DiscardedData
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return fmt.Errorf("event %s cannot be read: %w", e.Type, err)
		}
		message = d.MessageID
	default:
		return nil
	}
	delete(p.texts, textKey{kind: core.EventMessageDelta, message: message})
	delete(p.texts, textKey{kind: core.EventReasoningDelta, message: message})
	return nil
}
