package client

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strconv"
	"time"

	"bobbin/app/core"
)

// errorEvent is the event with which the server ends a stream after an error.
const errorEvent = "error"

// decodeEvent returns the event in a frame. It returns an error event as a *ProblemError.
func decodeEvent(f frame) (core.Event, error) {
	if f.event == errorEvent {
		problem := &ProblemError{}
		if err := json.Unmarshal(f.data, problem); err != nil {
			return core.Event{}, fmt.Errorf("decode error event: %w", err)
		}
		return core.Event{}, problem
	}
	var head struct {
		SessionID core.SessionID `json:"session_id"`
		RunID     core.RunID     `json:"run_id"`
		At        time.Time      `json:"at"`
	}
	if err := json.Unmarshal(f.data, &head); err != nil {
		return core.Event{}, fmt.Errorf("decode event %s: %w", f.event, err)
	}
	e := core.Event{SessionID: head.SessionID, RunID: head.RunID, At: head.At, Type: core.EventType(f.event)}
	e.Data = core.DecodeEventData(e.Type, f.data)
	readByProgress := e.Type.IsText() || e.Type == core.EventMessageStarted || e.Type == core.EventMessageCreated || e.Type == core.EventMessageDiscarded
	if _, undecoded := e.Data.(json.RawMessage); undecoded && readByProgress {
		return core.Event{}, fmt.Errorf("decode event %s: unexpected data", e.Type)
	}
	if f.id != "" {
		seq, err := strconv.ParseInt(f.id, 10, 64)
		if err != nil || seq < 0 || seq == 0 && e.Type != core.EventResync {
			return core.Event{}, fmt.Errorf("event %s has an invalid id %q", f.event, f.id)
		}
		e.Seq = seq
	}
	return e, nil
}

type textKey struct {
	kind    core.EventType
	message core.MessageID
	call    string // whose arguments it is; empty = none
}

// progress is the position in a stream. It filters out what a new connection repeats.
type progress struct {
	after int64           // number of the last durable event, or unknownSeq
	texts map[textKey]int // received of each streaming text, in code units of UTF-16

	started core.Event // message.started of the streaming message
}

// acceptEvent returns the event with its new part, false if nothing in it is new.
func (p *progress) acceptEvent(e core.Event) (core.Event, bool) {
	switch {
	case e.Type == core.EventResync:
		// The next event may have any number, for example after a restore of the database.
		p.after = unknownSeq
		if e.Seq > 0 {
			p.after = e.Seq
		}
		clear(p.texts)
	case e.Seq > 0 && e.Seq <= p.after:
		return e, false
	case e.Seq > 0:
		p.after = e.Seq
		if message := e.FinishedMessage(); message != "" {
			maps.DeleteFunc(p.texts, func(k textKey, _ int) bool { return k.message == message })
		}
	}
	started, _ := p.started.Data.(core.StartedData)
	switch d := e.Data.(type) {
	case core.StartedData: // a new connection repeats it
		p.started = e // what deltas do not repeat
		return e, d.MessageID != started.MessageID
	case core.DeltaData:
		key := textKey{kind: e.Type, message: d.MessageID, call: d.CallID()}
		have, end := p.texts[key], d.OffsetUTF16+core.UTF16Len(d.Text)
		if end <= have && len(d.Text) > 0 {
			return e, false
		}
		p.texts[key] = max(end, have)
		if d.OffsetUTF16 < have {
			d.Text, d.OffsetUTF16 = d.Text[core.UTF16Index(d.Text, have-d.OffsetUTF16):], have
		}
		if started.MessageID == d.MessageID {
			e.SessionID, e.RunID, e.At = p.started.SessionID, p.started.RunID, p.started.At
			d.ParentID, d.Attempt = started.ParentID, started.Attempt
		}
		return e.WithData(d), true
	}
	return e, true
}

// maxFrame is the maximum size of an event, in bytes. The largest contain a message of 1 MiB.
const maxFrame = 32 << 20

type frame struct {
	id    string // "" = the frame has none
	event string
	data  []byte // nil = a comment, which keeps the connection alive
}

// newFrames returns a scanner of a stream's frames. An incomplete one at the end is dropped.
func newFrames(r io.Reader) *bufio.Scanner {
	frames, searched := bufio.NewScanner(r), 0
	frames.Buffer(nil, maxFrame)
	frames.Split(func(data []byte, _ bool) (int, []byte, error) {
		end := bytes.Index(data[searched:], []byte("\n\n"))
		if end < 0 {
			searched = max(0, len(data)-1)
			return 0, nil, nil
		}
		end += searched
		searched = 0
		return end + 2, data[:end], nil
	})
	return frames
}

// parseFrame reads a frame as the server writes it: on one line each, the id, the name and the data.
func parseFrame(text []byte) (f frame) {
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		switch name, value, _ := bytes.Cut(line, []byte(": ")); string(name) {
		case "id":
			f.id = string(value)
		case "event":
			f.event = string(value)
		case "data":
			f.data = bytes.Clone(value)
		}
	}
	return f
}
