package sse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"bobbin/app/core"
)

// ErrorEvent is the name of the event that ends a stream because of an error.
const ErrorEvent = "error"

// AppendEvent appends the event's frame to buf. It fails if the event's data is
// not a JSON object.
func AppendEvent(buf []byte, e core.Event) ([]byte, error) {
	data, err := mergedData(e)
	if err != nil {
		return buf, err
	}
	if e.Seq > 0 || e.Type == core.EventResync {
		buf = append(buf, "id: "...)
		buf = strconv.AppendInt(buf, e.Seq, 10)
		buf = append(buf, '\n')
	}
	return appendFrame(buf, string(e.Type), data), nil
}

// AppendError appends the frame of an error event; problem is its data in JSON.
func AppendError(buf, problem []byte) []byte {
	return appendFrame(buf, ErrorEvent, problem)
}

func appendFrame(buf []byte, name string, data []byte) []byte {
	buf = append(buf, "event: "...)
	buf = append(buf, name...)
	buf = append(buf, "\ndata: "...)
	buf = append(buf, data...)
	return append(buf, "\n\n"...)
}

// mergedData returns the event's data, on one line, with the fields before it
// that every event has.
func mergedData(e core.Event) ([]byte, error) {
	head, err := json.Marshal(struct {
		SessionID core.SessionID `json:"session_id"`
		RunID     core.RunID     `json:"run_id,omitempty"`
		At        time.Time      `json:"at"`
	}{e.SessionID, e.RunID, e.At})
	if err != nil {
		return nil, err
	}
	data := bytes.TrimSpace(e.Data)
	if len(data) == 0 || bytes.Equal(data, []byte("{}")) {
		return head, nil
	}
	// Compact also checks the syntax. A line break in the data would end the frame;
	// JSON allows it only between values, where Compact takes it out.
	var out bytes.Buffer
	out.Grow(len(head) + len(data))
	if err := json.Compact(&out, data); err != nil {
		return nil, err
	}
	body := out.Bytes()
	if body[0] != '{' {
		return nil, fmt.Errorf("data of %s is not a JSON object", e.Type)
	}
	if len(body) == len("{}") {
		return head, nil
	}
	head[len(head)-1] = ','
	return append(head, body[1:]...), nil
}
