package openai

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// answer follows the events of a run and keeps what the client has got of its messages, one after the
// other: their texts, and the calls of the client's tools. Tools of the server are invisible: a client
// would try to execute them.
type answer struct {
	run     core.Run
	to      dialect        // nil = nobody is told of pieces
	holds   bool           // pieces are told of when their message is stored
	message core.MessageID // whose items are on their way
	items   []*item        // these
	gone    core.MessageID // the last message that ended: a watcher that joins late may get its text after that
	lost    bool           // the client has got a part of a message that is no answer any more
	open    []core.Approval
	finish  core.FinishReason
	ended   bool
	waits   []core.Approval // the calls of the client's tools with which the answer has ended

	texts []string       // of the messages that are stored
	leaf  core.MessageID // the last of them
}

// item is the text of a message, or a call of the client's tool.
type item struct {
	outputItem
	call string // the id of the call; empty = it is the text
	sent int    // bytes of the text, or of the arguments
	text string // all of it, once it is whole
}

// dialect is how a protocol writes the items of a message.
type dialect interface {
	// writePiece writes what is new of an item, which may have just begun.
	writePiece(i int, begins bool, text string)
	// endItems writes the end of the items, whose status is set.
	endItems()
}

// Status of an item.
const (
	itemInProgress = "in_progress"
	itemCompleted  = "completed"
	itemIncomplete = "incomplete"
)

// textSeparator stands between the texts of two messages of one answer.
const textSeparator = "\n\n"

// follow adds what the event says.
func (a *answer) follow(e core.Event) {
	switch data := e.Data.(type) {
	case core.DeltaData:
		if e.Type != core.EventReasoningDelta && data.MessageID != a.gone && !a.holds {
			var call core.DeltaCall
			if data.DeltaCall != nil {
				call = *data.DeltaCall
			}
			a.extend(data.MessageID, call, data.Offset, data.Text)
		}
	case core.MessageData:
		if e.Type == core.EventMessageCreated && data.Message.Role == core.RoleAssistant {
			a.finishMessage(data.Message)
		}
	case core.DiscardedData: // another message follows; the items stay, without text
		if a.message != data.MessageID || len(a.items) == 0 {
			a.extend(data.MessageID, core.DeltaCall{}, 0, "")
		}
		a.endItems(false)
		a.holds = a.holds && data.Reason != string(llm.KindContentFilter) // else the next try has no half answer
	case core.ApprovalData:
		a.followApproval(e.Type, data.Approval)
		if s := data.Approval.Status; s == core.ApprovalExpired || s == core.ApprovalClosed { // so are all others
			return
		}
	case core.RunData:
		data.Run.Options = a.run.Options // events have none
		a.run, a.ended = data.Run, e.Type.EndsRun()
		a.finish = cmp.Or(limitOf(a.run), a.finish)
	}
	ofPerson := func(open core.Approval) bool { return open.Kind != core.KindClientTool } // who decides elsewhere
	if a.run.Status == core.RunWaiting && len(a.open) > 0 && !slices.ContainsFunc(a.open, ofPerson) {
		a.waits, a.finish, a.ended = a.open, core.FinishToolCalls, true
	}
	if a.ended {
		a.endItems(len(a.waits) > 0)
	}
}

// extend adds the part of an item from offset on that the client does not have, and returns the item.
func (a *answer) extend(id core.MessageID, call core.DeltaCall, offset int, text string) *item {
	if id != a.message {
		a.endItems(false) // their end is lost
		a.message = id
	}
	i := slices.IndexFunc(a.items, func(it *item) bool { return it.call == call.ToolCallID })
	begins := i < 0
	if begins {
		i = len(a.items)
		a.items = append(a.items, &item{call: call.ToolCallID, outputItem: a.newItem(id, call)})
	}
	it := a.items[i]
	if offset > it.sent || offset+len(text) <= it.sent { // something before it is missing, or it is not new
		text = ""
	} else {
		text = text[it.sent-offset:]
	}
	it.sent += len(text)
	if a.to != nil && (begins || text != "") {
		a.to.writePiece(i, begins, text)
	}
	return it
}

// newItem returns an item of the message that begins.
func (a *answer) newItem(id core.MessageID, call core.DeltaCall) outputItem {
	if call.ToolCallID == "" {
		return outputItem{ID: messagePrefix + string(id), Type: "message", Status: itemInProgress, Role: "assistant", Content: []outputPart{}}
	}
	begun := callItem(a.run.ID, id, core.ToolCall{ID: call.ToolCallID, Name: call.Name})
	begun.Status = itemInProgress
	return begun
}

// finishMessage ends a message that is in the log: one with calls of the client's tools when the run waits
// for them, which followApproval adds. One that only calls tools of the server is no item.
func (a *answer) finishMessage(m core.Message) {
	a.finish, a.leaf = m.FinishReason, m.ID
	a.texts = append(a.texts, m.Content)
	hasText := a.message == m.ID && slices.ContainsFunc(a.items, func(it *item) bool { return it.call == "" })
	if m.Content != "" || len(m.ToolCalls) == 0 || hasText {
		it := a.extend(m.ID, core.DeltaCall{}, 0, m.Content)
		it.text = m.Content // without a thought that was recognized by its end
		if it.Status = itemCompleted; m.Status == core.MessagePartial {
			it.Status = itemIncomplete
		}
	}
	if a.message == m.ID && !slices.ContainsFunc(m.ToolCalls, func(call core.ToolCall) bool { return a.run.HasClientTool(call.Name) }) { // else pieces of the next one came first
		a.endItems(false)
	}
}

// endItems ends the items of the message. Those that are not whole end incomplete and empty.
func (a *answer) endItems(whole bool) {
	if a.message != "" {
		a.gone = a.message
	}
	for _, it := range a.items {
		if it.Status != itemInProgress {
			continue
		}
		if it.Status = itemCompleted; !whole {
			it.Status, it.text = itemIncomplete, ""
			a.lost = a.lost || it.call != "" || it.sent > 0 && !a.ended
		}
	}
	if a.to != nil && len(a.items) > 0 {
		a.to.endItems()
	}
	a.message, a.items = "", nil
}

func (a *answer) followApproval(kind core.EventType, approval core.Approval) {
	a.open = slices.DeleteFunc(a.open, func(open core.Approval) bool { return open.ID == approval.ID })
	if kind != core.EventApprovalRequested {
		return
	}
	a.open = append(a.open, approval)
	if approval.Kind == core.KindClientTool && a.leaf != "" { // also of a tool that a later request has dropped
		a.extend(a.leaf, core.DeltaCall{ToolCallID: approval.ToolCallID, Name: approval.Tool}, 0, approval.Arguments).text = approval.Arguments
	}
}

// limitOf returns FinishLength for a run that failed because the model thought until max_output_tokens: for
// clients of this API that is an answer without text.
func limitOf(run core.Run) core.FinishReason {
	if run.Error != nil && run.Error.Code == "model_"+string(llm.KindOutputLimit) {
		return core.FinishLength
	}
	return ""
}

// failureOf returns the error of a failed run, nil of another one.
func failureOf(run core.Run) error {
	if run.Status != core.RunFailed || limitOf(run) != "" {
		return nil
	}
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
	if a.finish == core.FinishLength || a.finish == core.FinishContentFilter || len(a.waits) > 0 {
		return string(a.finish)
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

// errStillRuns says that a request has waited for an answer as long as it may.
var errStillRuns = errors.New("the run has not ended")

// awaitAnswer calls see with the events of the run until it says that the answer has ended. A failed run is an
// error: clients that wait for the text look at nothing else.
func (a *API) awaitAnswer(c *gin.Context, tenant core.Tenant, b activeRun, field string, see func(core.Event) (ended bool)) error {
	ctx, cancel := context.WithTimeoutCause(c.Request.Context(), a.Streams.Wait, errStillRuns)
	defer cancel()
	for e, err := range a.Chat.WatchRun(ctx, tenant, b.run, b.from) {
		if errors.Is(context.Cause(ctx), errStillRuns) {
			return errStillRuns
		}
		if err != nil {
			return err
		}
		if data, ok := e.Data.(core.ContextData); ok && data.Trigger == "refused" { // by the provider: a part of the field
			c.Header(headerIgnored, strings.Join(append(slices.Clip(b.ignored), field), ", "))
		}
		if see(e) {
			data, _ := e.Data.(core.RunData)
			return failureOf(data.Run)
		}
	}
	return cmp.Or(context.Cause(ctx), errStillRuns)
}

// reasoningOf returns the model's thoughts that the event adds.
func reasoningOf(e core.Event) string {
	if data, ok := e.Data.(core.DeltaData); ok && e.Type == core.EventReasoningDelta {
		return data.Text
	}
	return ""
}
