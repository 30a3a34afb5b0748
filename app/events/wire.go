package events

import (
	"encoding/json"
	"fmt"
	"time"

	"bobbin/app/core"
)

// wireEvent is a core.Event as it crosses the bus.
type wireEvent struct {
	Session core.SessionID  `json:"s"`
	Seq     int64           `json:"n,omitempty"`
	Type    core.EventType  `json:"t"`
	Run     core.RunID      `json:"r,omitempty"`
	At      time.Time       `json:"at"`
	Data    json.RawMessage `json:"d,omitempty"`
	Hint    bool            `json:"h,omitempty"` // the data are left out: too large for the bus
}

// subject is where the events of a session are published.
func subject(session core.SessionID) string { return "session." + string(session) }

// encode leaves the data out if they are larger than limit and the store has them.
func encode(e core.Event, limit int) ([]byte, error) {
	w := wireEvent{Session: e.SessionID, Seq: e.Seq, Type: e.Type, Run: e.RunID, At: e.At, Data: e.Data}
	if e.Seq > 0 && len(e.Data) > limit {
		w.Data, w.Hint = nil, true
	}
	raw, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.Type, err)
	}
	return raw, nil
}

// decode returns the event, and false if it is without its data.
func decode(raw []byte) (core.Event, bool, error) {
	var w wireEvent
	if err := json.Unmarshal(raw, &w); err != nil {
		return core.Event{}, false, fmt.Errorf("decode event: %w", err)
	}
	return core.Event{
		SessionID: w.Session, Seq: w.Seq, Type: w.Type, RunID: w.Run, At: w.At, Data: w.Data,
	}, !w.Hint, nil
}

// deltaOf returns the data of a piece of a message.
func deltaOf(e core.Event) (core.DeltaData, error) {
	var d core.DeltaData
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return d, fmt.Errorf("decode delta: %w", err)
	}
	return d, nil
}

// isText reports whether the event is a piece of a message on its way.
func isText(t core.EventType) bool {
	return t == core.EventMessageDelta || t == core.EventReasoningDelta
}

// endsRun reports whether nothing of the event's run comes after it.
func endsRun(t core.EventType) bool {
	return t == core.EventRunSucceeded || t == core.EventRunFailed || t == core.EventRunCanceled
}

// finished returns the message whose text ends with the event; empty = none.
func finished(e core.Event) core.MessageID {
	switch e.Type {
	case core.EventMessageCreated:
		var d struct {
			Message struct {
				ID core.MessageID `json:"id"`
			} `json:"message"`
		}
		if json.Unmarshal(e.Data, &d) == nil {
			return d.Message.ID
		}
	case core.EventMessageDiscarded:
		var d core.DiscardedData
		if json.Unmarshal(e.Data, &d) == nil {
			return d.MessageID
		}
	}
	return ""
}
