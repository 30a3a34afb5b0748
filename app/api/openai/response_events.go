package openai

import (
	"slices"
	"strconv"

	"bobbin/app/core"
)

// Sequence numbers of a response's events follow from what they say, not from when they were
// sent: a client that comes back with starting_after gets exactly the rest, although the live text
// came in other pieces. The items of a message, its text and the calls of the client's tools, end
// together and have messageSpan numbers:
const (
	firstMessage = 3       // after response.created, response.queued if it was, and response.in_progress
	messageSpan  = 1 << 32 // more than a message has bytes
	itemAdded    = 0       // of the text
	partAdded    = 1
	pieceBegins  = 2               // the number of a delta: this, and the bytes of the items up to its end, and one for each call
	itemsDone    = messageSpan / 2 // those that end items, in turn
)

// responseEncoder writes a run as the events of a response.
type responseEncoder struct {
	shape *responseShape
	run   core.RunID
	after int64 // events up to this number are known to the client; -1 = none
	ended bool

	state   answer
	message core.MessageID // whose items are on their way
	open    []*openItem    // these
	pieces  int64          // numbers of their pieces so far
	before  int64          // messages before it that had items
	buf     []byte
	json    *jsonAppender

	created, begun bool // response.created is written, and response.in_progress
}

// openItem is an item on its way. It ends incomplete and empty unless it has another status then.
type openItem struct {
	outputItem
	text []byte // of the message, or the arguments of the call
}

func newResponseEncoder(shape *responseShape, run core.RunID, after int64) *responseEncoder {
	return &responseEncoder{shape: shape, run: run, after: after, json: newJSONAppender()}
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
		switch {
		case data.MessageID == e.state.gone: // a watcher that joins late may get its text after its end
		case data.DeltaCall != nil:
			e.extendCall(data.MessageID, *data.DeltaCall, data.Offset, data.Text)
		case event.Type == core.EventMessageDelta:
			e.extendText(data.MessageID, data.Offset, data.Text)
		}
	case core.MessageData:
		if event.Type == core.EventMessageCreated && data.Message.Role == core.RoleAssistant {
			e.finishMessage(data.Message)
		}
	case core.DiscardedData:
		// The items stay, without text: their numbers are taken.
		e.state.gone = data.MessageID
		if e.beginMessage(data.MessageID); len(e.open) == 0 {
			e.textItem(data.MessageID)
		}
		e.endItems()
	case core.ApprovalData:
		e.state.followApproval(event.Type, data.Approval)
	case core.RunData:
		e.followRun(event.Type, data.Run)
	}
	return e.buf, nil
}

// base returns the first sequence number of the message whose items are on their way, or come next.
func (e *responseEncoder) base() int64 { return firstMessage + e.before*messageSpan }

// beginMessage begins a message unless it has begun.
func (e *responseEncoder) beginMessage(id core.MessageID) {
	if id != e.message {
		e.endItems() // their end is lost
		e.message = id
	}
}

// addItem begins an item of the message and returns its place.
func (e *responseEncoder) addItem(number int64, item outputItem) int {
	i := len(e.open)
	e.open = append(e.open, &openItem{outputItem: item})
	e.emitEvent("response.output_item.added", number, itemEvent{OutputIndex: len(e.shape.Output) + i, Item: item})
	return i
}

// textItem returns the place of the message's text among its items. It begins the item unless it has begun.
func (e *responseEncoder) textItem(id core.MessageID) int {
	e.beginMessage(id)
	for i, item := range e.open {
		if item.Type == "message" {
			return i
		}
	}
	item := outputItem{ID: messagePrefix + string(id), Type: "message", Status: "in_progress", Role: "assistant", Content: []outputPart{}}
	i := e.addItem(e.base()+itemAdded, item)
	e.emitEvent("response.content_part.added", e.base()+partAdded, contentEvent{ItemID: item.ID, OutputIndex: len(e.shape.Output) + i, Part: new(outputText(""))})
	return i
}

// extend adds the part of an item's text that is new, and returns that which the client does not have
// and the number of its event.
func (e *responseEncoder) extend(item *openItem, offset int, text string) (string, int64) {
	if text = newPart(len(item.text), offset, text); text == "" {
		return "", 0
	}
	item.text = append(item.text, text...)
	e.pieces += int64(len(text))
	number := e.base() + pieceBegins + e.pieces
	known := max(0, e.after-(number-int64(len(text)))) // the client has the beginning
	return text[min(known, int64(len(text))):], number
}

// extendText adds a piece of the message's text.
func (e *responseEncoder) extendText(id core.MessageID, offset int, text string) {
	i := e.textItem(id)
	item := e.open[i]
	text, number := e.extend(item, offset, text)
	if text == "" {
		return
	}
	e.emitEvent("response.output_text.delta", number, contentEvent{ItemID: item.ID, OutputIndex: len(e.shape.Output) + i, Delta: text, Logprobs: []any{}})
}

// extendCall adds a piece of the arguments of a call of the client's tool.
func (e *responseEncoder) extendCall(id core.MessageID, call core.DeltaCall, offset int, arguments string) {
	e.beginMessage(id)
	item := callItem(e.run, id, core.ToolCall{ID: call.ToolCallID, Name: call.Name})
	i := slices.IndexFunc(e.open, func(o *openItem) bool { return o.ID == item.ID })
	if i < 0 {
		item.Status = "in_progress"
		e.pieces++
		i = e.addItem(e.base()+pieceBegins+e.pieces, item)
	}
	if text, number := e.extend(e.open[i], offset, arguments); text != "" {
		e.emitEvent("response.function_call_arguments.delta", number, contentEvent{ItemID: item.ID, OutputIndex: len(e.shape.Output) + i, Delta: text})
	}
}

// finishMessage ends a message that is in the log: with calls of the client's tools when the run waits
// for them. One that only calls tools of the server is no item.
func (e *responseEncoder) finishMessage(m core.Message) {
	e.state.finish = m.FinishReason
	if m.Content != "" || len(m.ToolCalls) == 0 {
		e.extendText(m.ID, 0, m.Content)
		item := e.open[e.textItem(m.ID)]
		item.text = []byte(m.Content) // without a thought that was recognized by its end
		if item.Status = "completed"; m.Status == core.MessagePartial {
			item.Status = "incomplete"
		}
	}
	waits := false
	for _, call := range m.ToolCalls {
		if slices.ContainsFunc(e.shape.Tools, func(t responseTool) bool { return t.Name == call.Name }) {
			e.extendCall(m.ID, core.DeltaCall{ToolCallID: call.ID, Name: call.Name}, 0, call.Arguments)
			waits = true
		}
	}
	if !waits {
		e.endItems()
	}
}

// endItems ends the items of the message.
func (e *responseEncoder) endItems() {
	number := e.base() + itemsDone
	for _, item := range e.open {
		if item.Status == "in_progress" {
			item.Status, item.text = "incomplete", nil
		}
		index, text := len(e.shape.Output), string(item.text)
		if item.Type == "message" {
			item.Content = []outputPart{outputText(text)}
			e.emitEvent("response.output_text.done", number, contentEvent{ItemID: item.ID, OutputIndex: index, Text: &text, Logprobs: []any{}})
			e.emitEvent("response.content_part.done", number+1, contentEvent{ItemID: item.ID, OutputIndex: index, Part: &item.Content[0]})
		} else {
			item.Arguments = &text
			e.emitEvent("response.function_call_arguments.done", number, contentEvent{ItemID: item.ID, OutputIndex: index, Name: item.Name, Arguments: &text})
		}
		e.emitEvent("response.output_item.done", number+2, itemEvent{OutputIndex: index, Item: item.outputItem})
		e.shape.Output = append(e.shape.Output, item.outputItem)
		number += 3
	}
	if len(e.open) > 0 {
		e.before++
	}
	e.message, e.open, e.pieces = "", nil, 0
}

func (e *responseEncoder) followRun(kind core.EventType, run core.Run) {
	switch kind {
	case core.EventRunWaiting:
		if len(e.state.clientCalls()) == 0 {
			return // a person decides elsewhere
		}
		for _, item := range e.open {
			item.Status = "completed"
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
	e.endItems()
	u := run.Usage
	e.shape.Status, e.ended = status, true
	e.shape.Usage = &responseUsage{
		InputTokens: u.InputTokens, InputDetails: cachedTokens{u.CacheReadTokens}, OutputTokens: u.OutputTokens,
		OutputDetails: reasoningTokens{u.ReasoningTokens}, TotalTokens: u.InputTokens + u.OutputTokens,
	}
	e.emitResponse(name, e.base(), *e.shape)
}

// Events of a response besides their type and sequence number.
type (
	itemEvent struct {
		OutputIndex int        `json:"output_index"`
		Item        outputItem `json:"item"`
	}
	// contentEvent is about the one part of an item, or about the arguments of a call.
	contentEvent struct {
		ItemID       string      `json:"item_id"`
		OutputIndex  int         `json:"output_index"`
		ContentIndex int         `json:"content_index"`
		Part         *outputPart `json:"part,omitempty"`
		Delta        string      `json:"delta,omitempty"`
		Text         *string     `json:"text,omitempty"`
		Logprobs     []any       `json:"logprobs,omitzero"` // of a text never nil: clients expect the list
		Name         string      `json:"name,omitempty"`
		Arguments    *string     `json:"arguments,omitempty"`
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
	buf := append(append(append(e.buf, "event: "...), name...), "\ndata: {\"type\":\""...)
	buf = strconv.AppendInt(append(append(buf, name...), `","sequence_number":`...), number, 10)
	open := len(buf) // the brace of the data, which go on in the same object
	buf = e.json.append(buf, data)
	buf[open] = ','
	e.buf = append(buf, "\n\n"...)
}
