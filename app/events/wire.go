package events

import (
	"encoding/json"
	"fmt"
	"time"

	"bobbin/app/core"
)

// wireEvent is a core.Event as it is sent over the bus.
type wireEvent struct {
	Session core.SessionID  `json:"s"`
	Seq     int64           `json:"n,omitempty"`
	Type    core.EventType  `json:"t"`
	Run     core.RunID      `json:"r,omitempty"`
	At      time.Time       `json:"at"`
	Data    json.RawMessage `json:"d,omitempty"`
	Hint    bool            `json:"h,omitempty"` // the data are left out: too large for the bus
}

// sessionSubject is the subject of a session's events.
func sessionSubject(session core.SessionID) string { return "session." + string(session) }

// encode leaves the data out if they are larger than maxWire and the store has them.
func encode(e core.Event) ([]byte, error) {
	w := wireEvent{Session: e.SessionID, Seq: e.Seq, Type: e.Type, Run: e.RunID, At: e.At}
	var err error
	if e.Data != nil {
		w.Data, err = json.Marshal(e.Data)
	}
	if e.Seq > 0 && len(w.Data) > maxWire {
		w.Data, w.Hint = nil, true
	}
	var raw []byte
	if err == nil {
		raw, err = json.Marshal(w)
	}
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.Type, err)
	}
	return raw, nil
}

// decode returns the event, and false if it comes without its data.
func decode(raw []byte) (core.Event, bool, error) {
	var w wireEvent
	if err := json.Unmarshal(raw, &w); err != nil {
		return core.Event{}, false, fmt.Errorf("decode event: %w", err)
	}
	e := core.Event{SessionID: w.Session, Seq: w.Seq, Type: w.Type, RunID: w.Run, At: w.At, Size: len(w.Data)}
	if len(w.Data) > 0 {
		e.Data = core.DecodeEventData(w.Type, w.Data)
	}
	if _, ok := e.Data.(core.DeltaData); w.Type.IsText() && !ok {
		return core.Event{}, false, fmt.Errorf("decode event %s: its data are no delta", w.Type)
	}
	return e, !w.Hint, nil
}
