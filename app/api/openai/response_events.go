package openai

import (
	"cmp"
	"strconv"
	"strings"

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
	answer
	shape  *responseShape
	after  int64 // events up to this number are known to the client; -1 = none
	pieces int64 // numbers of the pieces of the message's items so far
	before int64 // messages before it that had items
	buf    []byte
	json   *jsonAppender

	created, begun bool // response.created is written, and response.in_progress
}

func newResponseEncoder(shape *responseShape, run core.Run, after int64) *responseEncoder {
	e := &responseEncoder{shape: shape, after: after, json: newJSONAppender()}
	e.answer = answer{run: run, to: e}
	return e
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
	if e.follow(event); e.ended {
		e.endResponse(event.Type)
	}
	return e.buf, nil
}

// base returns the first sequence number of the message whose items are on their way, or come next.
func (e *responseEncoder) base() int64 { return firstMessage + e.before*messageSpan }

func (e *responseEncoder) writePiece(i int, begins bool, text string) {
	it, index := e.items[i], len(e.shape.Output)+i
	if begins && it.call == "" {
		e.emitEvent("response.output_item.added", e.base()+itemAdded, itemEvent{OutputIndex: index, Item: it.outputItem})
		e.emitEvent("response.content_part.added", e.base()+partAdded, contentEvent{ItemID: it.ID, OutputIndex: index, Part: new(outputText(""))})
	} else if begins {
		e.pieces++
		e.emitEvent("response.output_item.added", e.base()+pieceBegins+e.pieces, itemEvent{OutputIndex: index, Item: it.outputItem})
	}
	if text == "" {
		return
	}
	e.pieces += int64(len(text))
	number := e.base() + pieceBegins + e.pieces
	known := max(0, e.after-(number-int64(len(text)))) // the client has the beginning
	name, piece := "response.function_call_arguments.delta", contentEvent{ItemID: it.ID, OutputIndex: index, Delta: text[min(known, int64(len(text))):]}
	if it.call == "" {
		name, piece.Logprobs = "response.output_text.delta", []any{}
	}
	e.emitEvent(name, number, piece)
}

func (e *responseEncoder) endItems() {
	number := e.base() + itemsDone
	for _, it := range e.items {
		index := len(e.shape.Output)
		if it.call == "" {
			it.Content = []outputPart{outputText(it.text)}
			e.emitEvent("response.output_text.done", number, contentEvent{ItemID: it.ID, OutputIndex: index, Text: &it.text, Logprobs: []any{}})
			e.emitEvent("response.content_part.done", number+1, contentEvent{ItemID: it.ID, OutputIndex: index, Part: &it.Content[0]})
		} else {
			it.Arguments = &it.text
			e.emitEvent("response.function_call_arguments.done", number, contentEvent{ItemID: it.ID, OutputIndex: index, Name: it.Name, Arguments: &it.text})
		}
		e.emitEvent("response.output_item.done", number+2, itemEvent{OutputIndex: index, Item: it.outputItem})
		e.shape.Output = append(e.shape.Output, it.outputItem)
		number += 3
	}
	e.before, e.pieces = e.before+1, 0
}

func (e *responseEncoder) endResponse(kind core.EventType) {
	e.shape.Status = "completed"
	switch {
	case e.finish == core.FinishLength && (kind == core.EventRunSucceeded || limitOf(e.run) != ""):
		e.shape.Status, e.shape.IncompleteDetails = "incomplete", &incomplete{"max_output_tokens"}
	case kind == core.EventRunSucceeded && e.finish == core.FinishContentFilter:
		e.shape.Status, e.shape.IncompleteDetails = "incomplete", &incomplete{"content_filter"}
	case kind == core.EventRunFailed:
		e.shape.Status, e.shape.Error = "failed", &responseError{Type: "server_error", Code: "server_error", Message: "the run failed"}
		if run := e.run; run.Error != nil {
			e.shape.Error.Code, e.shape.Error.Message = run.Error.Code, run.Error.Message
			if isTooLong(run.Error) {
				e.shape.Error.Code = "context_length_exceeded" // which clients know
			}
		}
	}
	name := "response." + e.shape.Status
	if kind == core.EventRunCanceled {
		e.shape.Status, name = "cancelled", "response.incomplete" //nolint:misspell // as OpenAI writes it
	}
	u := e.run.Usage
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

// responseShape is what all versions of a response have in common.
type responseShape struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	CreatedAt          int64             `json:"created_at"`
	Status             string            `json:"status"`
	Background         bool              `json:"background"`
	Error              *responseError    `json:"error"`
	IncompleteDetails  *incomplete       `json:"incomplete_details"`
	Instructions       *string           `json:"instructions"`
	MaxOutputTokens    *int              `json:"max_output_tokens"`
	Model              string            `json:"model"`
	Output             []outputItem      `json:"output"`
	ParallelToolCalls  bool              `json:"parallel_tool_calls"`
	PreviousResponseID *string           `json:"previous_response_id"`
	Conversation       responseOwner     `json:"conversation"`
	Store              bool              `json:"store"`
	Temperature        *float64          `json:"temperature"`
	TopP               *float64          `json:"top_p"`
	ToolChoice         any               `json:"tool_choice"` // a word, or the function that must be called
	Tools              []responseTool    `json:"tools"`
	Truncation         string            `json:"truncation"`
	Usage              *responseUsage    `json:"usage"`
	Metadata           map[string]string `json:"metadata"`
}

type responseOwner struct {
	ID string `json:"id"`
}

type responseError struct {
	Type    string  `json:"type"` // some clients read no error without type and param
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Param   *string `json:"param"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

type responseUsage struct {
	InputTokens   int             `json:"input_tokens"`
	InputDetails  cachedTokens    `json:"input_tokens_details"`
	OutputTokens  int             `json:"output_tokens"`
	OutputDetails reasoningTokens `json:"output_tokens_details"`
	TotalTokens   int             `json:"total_tokens"`
}

type reasoningTokens struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// newResponseShape returns the response of a run as far as the run says it, with what its request says:
// the details, or nil for those that the run has.
func newResponseShape(b activeRun, details *core.ResponseDetails) *responseShape {
	options := b.run.Options.At(b.from.After)
	id := responsePrefix + strings.ReplaceAll(string(b.run.ID), "-", "")
	if b.from.After > 0 { // it went on with results of the client's tools after this event
		id += "_" + strconv.FormatInt(b.from.After, 10)
	}
	s := &responseShape{
		ID: id, Object: "response", CreatedAt: b.run.CreatedAt.Unix(), Status: "in_progress", Model: b.run.Agent, Output: []outputItem{},
		ParallelToolCalls: options.ParallelToolCalls == nil || *options.ParallelToolCalls, Conversation: responseOwner{conversationPrefix + string(b.run.SessionID)},
		Store: true, Temperature: options.Temperature, TopP: options.TopP, ToolChoice: cmp.Or(options.ToolChoice, core.ToolChoiceWordAuto), Tools: []responseTool{},
		Truncation: "disabled", Metadata: map[string]string{},
	}
	if name := options.ToolChoice.Tool(); name != "" {
		s.ToolChoice = responseTool{Type: "function", ClientTool: core.ClientTool{Name: name}}
	}
	if b.run.Model != "" {
		s.Model += "/" + b.run.Model
	}
	if options.Instructions != "" {
		s.Instructions = &options.Instructions
	}
	if options.MaxOutputTokens != 0 {
		s.MaxOutputTokens = &options.MaxOutputTokens
	}
	for _, t := range options.Tools {
		s.Tools = append(s.Tools, responseTool{Type: "function", ClientTool: t})
	}
	if details == nil && b.from.After == 0 { // those of a response that goes on are not kept
		details = options.Response
	}
	if details == nil {
		return s
	}
	s.Background = details.Background
	if details.PreviousID != "" {
		s.PreviousResponseID = &details.PreviousID
	}
	if details.Metadata != nil {
		s.Metadata = details.Metadata
	}
	return s
}

// unfinished returns the response of a run that has not ended.
func (s *responseShape) unfinished(run core.Run) responseShape {
	out := *s
	if run.Status == core.RunQueued {
		out.Status = "queued"
	}
	return out
}
