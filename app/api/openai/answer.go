package openai

import (
	"context"
	"iter"
	"slices"
	"strings"

	"bobbin/app/core"
)

// answer follows the events of a run and keeps what the client gets of them: the texts of its
// messages, one after the other, and the calls of the client's tools. Tools of the server are
// invisible: a client would try to execute them.
type answer struct {
	message core.MessageID // whose text is on its way
	sent    int            // bytes of it
	created bool           // it is in the log: its text stays
	calls   []sentCall     // of the client's tools: the client has got a part of them, or all
	earlier int            // how many of them are of messages before it
	any     bool           // there is text of earlier messages
	gone    core.MessageID // the last message that was discarded: a watcher that joins late may get its text after that
	open    []core.Approval
	finish  core.FinishReason
	usage   core.Usage
	ended   bool
	waits   []core.Approval // the calls of the client's tools with which the answer has ended

	texts   []string       // of the messages that are stored
	leaf    core.MessageID // the last of them
	leafSeq int64
}

// sentCall is how much of a call the client has got.
type sentCall struct {
	id   string
	sent int // bytes of its arguments
}

// newPart returns the part of a text from offset on that is behind the bytes that the client has; empty = none,
// or something before it is missing.
func newPart(has, offset int, text string) string {
	if offset > has || offset+len(text) <= has {
		return ""
	}
	return text[has-offset:]
}

// text returns the text of the answer as turns have it.
func (a *answer) text() string { return normalize(strings.Join(a.texts, " ")) }

// storedText returns the text of the answer's messages that are in the log.
func (a *answer) storedText() string {
	texts := slices.DeleteFunc(slices.Clone(a.texts), func(text string) bool { return text == "" })
	return strings.Join(texts, textSeparator)
}

// answerDelta is what an event adds to the answer.
type answerDelta struct {
	text      string
	reasoning string
	calls     []callDelta // pieces of calls of the client's tools
	discarded bool        // what the client has got is no answer any more
	end       bool
}

// textSeparator stands between the texts of two messages of one answer.
const textSeparator = "\n\n"

// followEvent returns what the event adds. It returns an error for a failed run.
func (a *answer) followEvent(e core.Event) (answerDelta, error) {
	switch data := e.Data.(type) {
	case core.DeltaData:
		return a.followDelta(e, data), nil
	case core.MessageData:
		m := data.Message
		if e.Type != core.EventMessageCreated || m.Role != core.RoleAssistant {
			return answerDelta{}, nil
		}
		a.finish, a.leaf, a.leafSeq = m.FinishReason, m.ID, m.Seq
		a.texts = append(a.texts, m.Content)
		p := a.extend(m.ID, 0, m.Content)
		a.created = a.message == m.ID
		return p, nil
	case core.DiscardedData: // the text of a message that broke off; another one follows
		a.gone = data.MessageID
		if data.MessageID != a.message || !a.hasBegun() {
			return answerDelta{}, nil
		}
		a.sent, a.calls = 0, a.calls[:a.earlier]
		return answerDelta{discarded: true}, nil
	case core.ApprovalData:
		a.followApproval(e.Type, data.Approval)
	case core.RunData:
		switch e.Type {
		case core.EventRunWaiting:
			if a.waits = a.clientCalls(); len(a.waits) == 0 {
				return answerDelta{}, nil // a person decides elsewhere
			}
			a.finish = core.FinishToolCalls
			return a.end(data.Run), nil
		case core.EventRunFailed:
			a.ended = true
			return answerDelta{}, failureOf(data.Run)
		case core.EventRunSucceeded, core.EventRunCanceled:
			return a.end(data.Run), nil
		default:
			return answerDelta{}, nil
		}
	}
	return answerDelta{}, nil
}

// end ends the answer with what the client lacks of the calls. One that it has a part of, and whose
// result is not wanted, cannot be taken back.
func (a *answer) end(run core.Run) (p answerDelta) {
	a.usage, a.ended, p.end = run.Usage, true, true
	for _, call := range a.waits {
		p.calls = append(p.calls, a.extendCall(run.ID, core.DeltaCall{ToolCallID: call.ToolCallID, Name: call.Tool}, 0, call.Arguments)...)
	}
	p.discarded = len(a.calls) > len(a.waits)
	return p
}

func (a *answer) followDelta(e core.Event, d core.DeltaData) (p answerDelta) {
	switch {
	case e.Type == core.EventReasoningDelta:
		p.reasoning = d.Text
	case d.DeltaCall == nil:
		p = a.extend(d.MessageID, d.Offset, d.Text)
	case d.MessageID != a.gone:
		p.discarded = a.beginMessage(d.MessageID)
		p.calls = a.extendCall(e.RunID, *d.DeltaCall, d.Offset, d.Text)
	}
	return p
}

// hasBegun reports whether the client has got something of the message.
func (a *answer) hasBegun() bool { return a.sent > 0 || len(a.calls) > a.earlier }

// beginMessage begins a message unless it has begun, and reports whether the one before it is lost
// after the client has got a part of it.
func (a *answer) beginMessage(id core.MessageID) (discarded bool) {
	if id == a.message {
		return false
	}
	discarded = a.hasBegun() && !a.created
	a.any = a.any || a.sent > 0 && a.created
	a.message, a.sent, a.created, a.earlier = id, 0, false, len(a.calls)
	return discarded
}

// extendCall returns the part of a call's arguments from offset on that the client does not have.
func (a *answer) extendCall(run core.RunID, call core.DeltaCall, offset int, arguments string) []callDelta {
	i := slices.IndexFunc(a.calls, func(c sentCall) bool { return c.id == call.ToolCallID })
	var piece callDelta
	if i < 0 {
		i = len(a.calls)
		a.calls = append(a.calls, sentCall{id: call.ToolCallID})
		piece.toolCall = toolCall{ID: callID(run, call.ToolCallID), Type: "function", Function: functionCall{Name: call.Name}}
	}
	piece.Index = i
	piece.Function.Arguments = newPart(a.calls[i].sent, offset, arguments)
	if piece.ID+piece.Function.Arguments == "" {
		return nil
	}
	a.calls[i].sent += len(piece.Function.Arguments)
	return []callDelta{piece}
}

// extend returns the part of a message's text from offset on that the client does not have.
func (a *answer) extend(id core.MessageID, offset int, text string) (p answerDelta) {
	if id == a.gone {
		return p
	}
	p.discarded = a.beginMessage(id)
	text = newPart(a.sent, offset, text)
	if p.text = text; text != "" && a.sent == 0 && a.any {
		p.text = textSeparator + text
	}
	a.sent += len(text)
	return p
}

func (a *answer) followApproval(kind core.EventType, approval core.Approval) {
	a.open = slices.DeleteFunc(a.open, func(open core.Approval) bool { return open.ID == approval.ID })
	if kind == core.EventApprovalRequested {
		a.open = append(a.open, approval)
	}
}

// clientCalls returns the open calls of the client's tools in the order of their requests; none
// while a person has to decide about others.
func (a *answer) clientCalls() []core.Approval {
	if slices.ContainsFunc(a.open, func(open core.Approval) bool { return open.Kind != core.KindClientTool }) {
		return nil
	}
	return a.open
}

// failureOf returns the error of a failed run.
func failureOf(run core.Run) error {
	if run.Error == nil {
		return core.Errorf(core.ErrModel, "the run failed")
	}
	if isTooLong(run.Error) {
		return &core.Error{Kind: core.ErrContextFloor, Message: run.Error.Message}
	}
	return &core.Error{Kind: core.ErrModel, Code: run.Error.Code, Message: run.Error.Message}
}

// isTooLong reports whether a run failed because its prompt does not fit the model's window.
func isTooLong(e *core.RunError) bool {
	return e.Code == "context_floor" || e.Code == "model_context_length"
}

// finishReason returns the reason as this API names it.
func (a *answer) finishReason() string {
	switch a.finish {
	case core.FinishLength, core.FinishContentFilter:
		return string(a.finish)
	case core.FinishToolCalls:
		if len(a.waits) > 0 {
			return string(a.finish)
		}
	}
	return string(core.FinishStop)
}

// untilAnswered returns the events up to the end of the answer: a run that waits for the
// client's tools has not ended, but its answer has.
func untilAnswered(events iter.Seq2[core.Event, error], ended func() bool) iter.Seq2[core.Event, error] {
	return func(yield func(core.Event, error) bool) {
		for e, err := range events {
			if !yield(e, err) || ended() {
				return
			}
		}
	}
}

// collectAnswer returns the whole answer, and the model's thoughts; see gets each event.
func collectAnswer(ctx context.Context, events iter.Seq2[core.Event, error], see func(core.Event)) (*answer, string, error) {
	a := &answer{}
	var reasoning strings.Builder
	for e, err := range events {
		if err != nil {
			return a, "", err
		}
		see(e)
		p, err := a.followEvent(e)
		if err != nil {
			return a, "", err
		}
		reasoning.WriteString(p.reasoning)
		if p.end {
			return a, reasoning.String(), nil
		}
	}
	return a, reasoning.String(), context.Cause(ctx)
}
