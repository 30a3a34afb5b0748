package openai

import (
	"encoding/json"
	"strconv"

	"bobbin/app/core"
)

// Sequence numbers of a response's events follow from what they say, not from when they were
// sent: a client that comes back with starting_after gets exactly the rest, although the live text
// came in other pieces. Each item has itemSpan numbers, one for each byte of its text and these:
const (
	firstItem   = 3       // after response.created, response.queued if it was, and response.in_progress
	itemSpan    = 1 << 32 // more than a text has bytes
	itemAdded   = 0
	partAdded   = 1
	textBegins  = 2            // the number of a delta: this, and the bytes of the text up to its end
	textDone    = itemSpan - 3 // also of the arguments of a function
	partDone    = itemSpan - 2
	itemDone    = itemSpan - 1
	argsPartial = textBegins
)

// responseEncoder writes a run as the events of a response.
type responseEncoder struct {
	shape *responseShape
	run   core.RunID
	after int64 // events up to this number are known to the client; -1 = none
	ended bool
	final responseShape // the response as it ended

	state answer
	item  *outputItem // the message on its way; nil = none
	text  []byte      // of it
	buf   []byte
	quote *quoter

	created, begun bool // response.created is written, and response.in_progress
}

func newResponseEncoder(shape *responseShape, run core.RunID, after int64) *responseEncoder {
	return &responseEncoder{shape: shape, run: run, after: after, quote: newQuoter()}
}

// encode is a handlers.Encoder.
func (e *responseEncoder) encode(buf []byte, event core.Event) ([]byte, error) {
	e.buf = buf
	if event.Type == core.EventRunQueued && !e.begun {
		queued := *e.shape
		queued.Status = "queued"
		e.created = true
		e.emitResponse("response.created", 0, queued)
		e.emitResponse("response.queued", 1, queued)
		return e.buf, nil
	}
	if !e.begun {
		e.begun = true
		if !e.created {
			e.emitResponse("response.created", 0, *e.shape)
		}
		e.emitResponse("response.in_progress", 2, *e.shape)
	}
	switch data := event.Data.(type) {
	case core.DeltaData:
		if event.Type == core.EventMessageDelta {
			e.extendText(data.MessageID, data.Offset, data.Text)
		}
	case core.MessageData:
		if event.Type == core.EventMessageCreated && data.Message.Role == core.RoleAssistant {
			e.finishMessage(data.Message)
		}
	case core.DiscardedData:
		// The item stays, without text: its number is taken.
		e.state.gone = data.MessageID
		e.beginItem(data.MessageID)
		e.text = nil
		e.endItem("incomplete")
	case core.ApprovalData:
		e.state.followApproval(event.Type, data.Approval)
	case core.RunData:
		e.followRun(event.Type, data.Run)
	}
	return e.buf, nil
}

// base returns the first sequence number of the item that is on its way, or comes next.
func (e *responseEncoder) base() int64 { return firstItem + int64(len(e.shape.Output))*itemSpan }

// beginItem begins an item unless it has begun.
func (e *responseEncoder) beginItem(id core.MessageID) {
	if e.item != nil && e.item.ID[len(messagePrefix):] == string(id) {
		return
	}
	if e.item != nil { // its end is lost, so it is not in the log
		e.text = nil
		e.endItem("incomplete")
	}
	item := outputItem{ID: messagePrefix + string(id), Type: "message", Status: "in_progress", Role: "assistant", Content: []outputPart{}}
	e.item, e.text = &item, nil
	e.emitEvent("response.output_item.added", e.base()+itemAdded, itemEvent{OutputIndex: len(e.shape.Output), Item: item})
	e.emitEvent("response.content_part.added", e.base()+partAdded, partEvent{ItemID: item.ID, OutputIndex: len(e.shape.Output), Part: outputText("")})
}

// extendText adds the part of a text that is new.
func (e *responseEncoder) extendText(id core.MessageID, offset int, text string) {
	if id == e.state.gone { // a watcher that joins late may get its text after its end
		return
	}
	e.beginItem(id)
	if offset > len(e.text) || offset+len(text) <= len(e.text) {
		return
	}
	text = text[len(e.text)-offset:]
	e.text = append(e.text, text...)
	number := e.base() + textBegins + int64(len(e.text))
	if number <= e.after {
		return
	}
	if known := e.after - (number - int64(len(text))); known > 0 { // the client has the beginning
		text = text[known:]
	}
	// There is one for each word of an answer, so it is not encoded by reflection.
	const name = "response.output_text.delta"
	buf := append(e.buf, "event: "+name+"\ndata: {\"type\":\""+name+"\",\"sequence_number\":"...)
	buf = strconv.AppendInt(buf, number, 10)
	buf = append(append(append(buf, `,"item_id":"`...), e.item.ID...), `","output_index":`...)
	buf = strconv.AppendInt(buf, int64(len(e.shape.Output)), 10)
	buf = e.quote.append(append(buf, `,"content_index":0,"delta":`...), text)
	e.buf = append(buf, ",\"logprobs\":[]}\n\n"...)
}

// finishMessage ends a message that is in the log. One that only calls tools is no item.
func (e *responseEncoder) finishMessage(m core.Message) {
	e.state.finish, e.state.leaf = m.FinishReason, m.ID
	if m.Content == "" && len(m.ToolCalls) > 0 {
		return
	}
	e.extendText(m.ID, 0, m.Content)
	if m.Content == "" {
		e.beginItem(m.ID)
	}
	status := "completed"
	if m.Status == core.MessagePartial {
		status = "incomplete"
	}
	e.endItem(status)
}

func (e *responseEncoder) endItem(status string) {
	index, text := len(e.shape.Output), string(e.text)
	part := outputText(text)
	e.emitEvent("response.output_text.done", e.base()+textDone, textDoneEvent{ItemID: e.item.ID, OutputIndex: index, Text: text, Logprobs: []any{}})
	e.emitEvent("response.content_part.done", e.base()+partDone, partEvent{ItemID: e.item.ID, OutputIndex: index, Part: part})
	e.item.Status, e.item.Content = status, []outputPart{part}
	e.emitEvent("response.output_item.done", e.base()+itemDone, itemEvent{OutputIndex: index, Item: *e.item})
	e.shape.Output, e.item, e.text = append(e.shape.Output, *e.item), nil, nil
}

func (e *responseEncoder) followRun(kind core.EventType, run core.Run) {
	switch kind {
	case core.EventRunWaiting:
		calls := e.state.clientCalls()
		if len(calls) == 0 {
			return // a person decides elsewhere
		}
		for _, call := range calls {
			item := callItem(e.run, e.state.leaf, core.ToolCall{ID: call.ToolCallID, Name: call.Tool, Arguments: call.Arguments})
			index := len(e.shape.Output)
			begun, empty := item, ""
			begun.Status, begun.Arguments = "in_progress", &empty
			e.emitEvent("response.output_item.added", e.base()+itemAdded, itemEvent{OutputIndex: index, Item: begun})
			e.emitEvent("response.function_call_arguments.delta", e.base()+argsPartial, deltaEvent{ItemID: item.ID, OutputIndex: index, Delta: call.Arguments})
			e.emitEvent("response.function_call_arguments.done", e.base()+textDone, argsDoneEvent{ItemID: item.ID, OutputIndex: index, Name: call.Tool, Arguments: call.Arguments})
			e.emitEvent("response.output_item.done", e.base()+itemDone, itemEvent{OutputIndex: index, Item: item})
			e.shape.Output = append(e.shape.Output, item)
		}
		e.endResponse("response.completed", "completed", run)
	case core.EventRunSucceeded:
		switch e.state.finish {
		case core.FinishLength:
			e.shape.IncompleteDetails = &incomplete{"max_output_tokens"}
		case core.FinishContentFilter:
			e.shape.IncompleteDetails = &incomplete{"content_filter"}
		default:
			e.endResponse("response.completed", "completed", run)
			return
		}
		e.endResponse("response.incomplete", "incomplete", run)
	case core.EventRunCanceled:
		e.endResponse("response.incomplete", "cancelled", run) //nolint:misspell // as OpenAI writes it
	case core.EventRunFailed:
		e.shape.Error = &responseError{Type: "server_error", Code: "server_error", Message: "the run failed"}
		if run.Error != nil {
			e.shape.Error.Code, e.shape.Error.Message = run.Error.Code, run.Error.Message
			if isTooLong(run.Error) {
				e.shape.Error.Code = "context_length_exceeded" // which clients know
			}
		}
		e.endResponse("response.failed", "failed", run)
	}
}

// endResponse writes the last event.
func (e *responseEncoder) endResponse(name, status string, run core.Run) {
	u := run.Usage
	e.shape.Status, e.ended = status, true
	e.shape.Usage = &responseUsage{
		InputTokens: u.InputTokens, InputDetails: cachedTokens{u.CacheReadTokens}, OutputTokens: u.OutputTokens,
		OutputDetails: reasoningTokens{u.ReasoningTokens}, TotalTokens: u.InputTokens + u.OutputTokens,
	}
	e.final = *e.shape
	e.emitResponse(name, e.base(), e.final)
}

// Events of a response besides their type and sequence number.
type (
	itemEvent struct {
		OutputIndex int        `json:"output_index"`
		Item        outputItem `json:"item"`
	}
	partEvent struct {
		ItemID       string     `json:"item_id"`
		OutputIndex  int        `json:"output_index"`
		ContentIndex int        `json:"content_index"`
		Part         outputPart `json:"part"`
	}
	deltaEvent struct {
		ItemID       string `json:"item_id"`
		OutputIndex  int    `json:"output_index"`
		ContentIndex int    `json:"content_index"`
		Delta        string `json:"delta"`
	}
	textDoneEvent struct {
		ItemID       string `json:"item_id"`
		OutputIndex  int    `json:"output_index"`
		ContentIndex int    `json:"content_index"`
		Text         string `json:"text"`
		Logprobs     []any  `json:"logprobs"`
	}
	argsDoneEvent struct {
		ItemID      string `json:"item_id"`
		OutputIndex int    `json:"output_index"`
		Name        string `json:"name"`
		Arguments   string `json:"arguments"`
	}
	responseEvent struct {
		Response responseShape `json:"response"`
	}
)

func (e *responseEncoder) emitResponse(name string, number int64, r responseShape) {
	e.emitEvent(name, number, responseEvent{r})
}

// emitEvent appends the frame of an event that the client does not know.
func (e *responseEncoder) emitEvent(name string, number int64, data any) {
	if number <= e.after {
		return
	}
	head, err := json.Marshal(struct {
		Type   string `json:"type"`
		Number int64  `json:"sequence_number"`
	}{name, number})
	if err == nil {
		var body []byte
		if body, err = core.EncodeJSON(data); err == nil {
			e.buf = append(append(append(e.buf, "event: "...), name...), "\ndata: "...)
			e.buf = append(append(append(e.buf, head[:len(head)-1]...), ','), body[1:]...)
			e.buf = append(e.buf, "\n\n"...)
			return
		}
	}
	panic("openai: an event is not JSON: " + err.Error()) // it has strings and numbers
}
