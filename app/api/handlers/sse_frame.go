package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"bobbin/app/core"
)

// ErrorEvent is the name of the event that ends a stream after an error.
const ErrorEvent = "error"

// AppendEvent appends the event's frame to buf. It fails if the event's data are no object.
func AppendEvent(buf []byte, e core.Event) ([]byte, error) {
	if d, ok := e.Data.(core.DeltaData); ok {
		// There is a delta for each word of an answer.
		out := bytes.NewBuffer(appendName(buf, string(e.Type)))
		enc := json.NewEncoder(out) // it ends the line
		enc.SetEscapeHTML(false)
		if err := enc.Encode(core.LeanDelta{MessageID: d.MessageID, OffsetUTF16: d.OffsetUTF16, Text: d.Text, DeltaCall: d.DeltaCall}); err != nil {
			return buf, fmt.Errorf("data of %s: %w", e.Type, err)
		}
		return append(out.Bytes(), '\n'), nil
	}
	data, err := mergedData(e)
	if err != nil {
		return buf, fmt.Errorf("data of %s: %w", e.Type, err)
	}
	if e.Seq > 0 || e.Type == core.EventResync && e.SessionID != "" {
		buf = append(buf, "id: "...)
		buf = strconv.AppendInt(buf, e.Seq, 10)
		buf = append(buf, '\n')
	}
	return appendFrame(buf, string(e.Type), data), nil
}

func appendFrame(buf []byte, name string, data []byte) []byte {
	buf = appendName(buf, name)
	buf = append(buf, data...)
	return append(buf, "\n\n"...)
}

// appendName appends a frame's lines up to the data.
func appendName(buf []byte, name string) []byte {
	buf = append(buf, "event: "...)
	buf = append(buf, name...)
	return append(buf, "\ndata: "...)
}

// mergedData returns the event's data on one line, preceded by the common fields.
func mergedData(e core.Event) ([]byte, error) {
	head := []byte("{")
	if e.SessionID != "" {
		head = append(head, `"session_id":"`+string(e.SessionID)+`",`...)
	}
	if e.RunID != "" {
		head = append(head, `"run_id":"`+string(e.RunID)+`",`...)
	}
	at, err := e.At.MarshalJSON()
	if head = append(append(append(head, `"at":`...), at...), '}'); err != nil || e.Data == nil {
		return head, err
	}
	body, err := e.EncodeData()
	if err != nil {
		return nil, err
	}
	if body[0] != '{' {
		return nil, fmt.Errorf("%.20s is not a JSON object", body)
	}
	if len(body) == len("{}") {
		return head, nil
	}
	head[len(head)-1] = ','
	return append(head, body[1:]...), nil
}
