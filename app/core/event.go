package core

import (
	"encoding/json"
	"sync"
	"time"
)

// EventType names what happened; the list is in API.md.
type EventType string

// Durable events: written in the same transaction as what they report, and
// numbered in their session. A feed replays them after Last-Event-ID.
const (
	EventRunQueued         EventType = "run.queued"
	EventRunStarted        EventType = "run.started"
	EventRunWaiting        EventType = "run.waiting"
	EventRunSucceeded      EventType = "run.succeeded"
	EventRunFailed         EventType = "run.failed"
	EventRunCanceled       EventType = "run.canceled"
	EventMessageCreated    EventType = "message.created"
	EventMessageUpdated    EventType = "message.updated"
	EventMessageDiscarded  EventType = "message.discarded"
	EventMessagesImported  EventType = "messages.imported" // in place of a message.created for each of many
	EventToolStarted       EventType = "tool.started"
	EventToolFinished      EventType = "tool.finished"
	EventApprovalRequested EventType = "approval.requested"
	EventApprovalDecided   EventType = "approval.decided"
	EventContextStarted    EventType = "context.started"
	EventContextCompleted  EventType = "context.completed"
	EventContextFailed     EventType = "context.failed"
	EventContextSkipped    EventType = "context.skipped"
	EventContextWarning    EventType = "context.warning"
	EventSessionUpdated    EventType = "session.updated"
	EventDeliveryUpdated   EventType = "delivery.updated" // it arrived, or is not tried any more, or again
)

// Passing events: not stored and without a number. What they carry is in a
// durable event as soon as it is finished.
const (
	EventNodeStarted    EventType = "node.started"
	EventNodeFinished   EventType = "node.finished"
	EventMessageStarted EventType = "message.started" // to each watcher, before the first piece of a message's text
	EventMessageDelta   EventType = "message.delta"
	EventReasoningDelta EventType = "reasoning.delta"
	EventArgumentsDelta EventType = "arguments.delta" // of a call of a tool of the client; one that comes whole has none
	EventSessionHead    EventType = "session.head"    // of a feed of heads; has a SessionHead, or a RemovedHead
	EventResync         EventType = "resync"          // the number asked for is not kept, or not of this database: load messages, go on; has the number of the newest event
)

// EndsRun reports whether an event of the type is the last one of its run.
func (t EventType) EndsRun() bool {
	return t == EventRunSucceeded || t == EventRunFailed || t == EventRunCanceled
}

// IsText reports whether an event of the type is a piece of text, with DeltaData.
func (t EventType) IsText() bool {
	return t == EventMessageDelta || t == EventReasoningDelta || t == EventArgumentsDelta
}

// Event is something that happened in a session. Its readers share what it refers to, and
// change none of it.
type Event struct {
	SessionID SessionID
	Seq       int64 // 1, 2, 3 … in the session; 0 = a passing event. Of a resync: that after which it goes on
	Type      EventType
	Owner     EventOwner
	RunID     RunID // empty = not of a run
	At        time.Time
	Data      any    // the struct of the type, as DecodeEventData returns it; nil = none. What JSON leaves out may be missing
	Size      int    // of Data as JSON in the database, in bytes; 0 = it was not stored
	Frame     *Frame // shared by the readers of the event; nil = this one has its own
}

// EventOwner is the owner and the user of the event's session; empty in an event that was read.
type EventOwner Tenant

// Equal returns true: events do not differ by who knows the owner.
func (EventOwner) Equal(EventOwner) bool { return true }

// Cursor says where in a session's events a watcher begins.
type Cursor struct {
	After int64 // number of the last durable event that is known already; 0 = none, so all that are kept
	Live  bool  // only what happens from now on; After is ignored
}

// NewEvent returns an event of now.
func NewEvent(session SessionID, run RunID, kind EventType, data any) Event {
	return Event{SessionID: session, RunID: run, Type: kind, At: Now(), Data: data}
}

// WithData returns the event with other data.
func (e Event) WithData(data any) Event {
	e.Data, e.Size, e.Frame = data, 0, nil
	return e
}

// EncodeData returns the data as JSON, as they were stored if that is known.
func (e Event) EncodeData() ([]byte, error) {
	if e.Frame != nil && e.Frame.Data != nil {
		return e.Frame.Data, nil
	}
	return EncodeJSON(e.Data)
}

// FinishedMessage returns the message whose text ends with the event; empty = none.
func (e Event) FinishedMessage() MessageID {
	switch d := e.Data.(type) {
	case MessageData:
		if e.Type == EventMessageCreated {
			return d.Message.ID
		}
	case DiscardedData:
		return d.MessageID
	}
	return ""
}

// Frame is an event as a stream shows it: its first reader encodes it, the others share the
// bytes. A nil Frame is shared by nobody. Safe for concurrent use.
type Frame struct {
	Data []byte // the event's data as they were stored; nil = not known

	once  sync.Once
	bytes []byte
	err   error
}

// Encoded returns what encode returned to the first reader. The bytes must not be changed.
func (f *Frame) Encoded(encode func() ([]byte, error)) ([]byte, error) {
	if f == nil {
		return encode()
	}
	f.once.Do(func() { f.bytes, f.err = encode() })
	return f.bytes, f.err
}

// Equal returns true: events do not differ by who shares them.
func (f *Frame) Equal(*Frame) bool { return true }

// MessageData is the data of run.queued, message.created and message.updated.
type MessageData struct {
	Message Message `json:"message"`
}

// RunData is the data of run.started, run.waiting, run.succeeded, run.failed and run.canceled.
type RunData struct {
	Run Run `json:"run"`
	// Delivers says that a webhook is notified of the event. Only the process that stored the event
	// knows it.
	Delivers bool `json:"-"`
}

// StartedData is the data of message.started.
type StartedData struct {
	MessageID MessageID `json:"message_id"`
	Role      Role      `json:"role" enum:"assistant"`
	ParentID  MessageID `json:"parent_id,omitempty" doc:"The message before it."`
	Attempt   int       `json:"attempt" doc:"Of its run."`
}

// DeltaData is the data of message.delta, reasoning.delta and arguments.delta. Readers of the API
// get LeanDelta of it: the rest is in message.started.
type DeltaData struct {
	MessageID   MessageID `json:"message_id"`
	ParentID    MessageID `json:"parent_id,omitempty"`
	Attempt     int       `json:"attempt"`
	Offset      int       `json:"offset"`       // where Text begins in the message, in bytes of UTF-8
	OffsetUTF16 int       `json:"offset_utf16"` // the same in code units of UTF-16
	Text        string    `json:"text"`
	*DeltaCall            // nil = the text is of no call
}

// DeltaCall is the call whose arguments a delta extends.
type DeltaCall struct {
	ToolCallID string `json:"tool_call_id"`
	Name       string `json:"name"` // of the tool
}

// CallID returns the id of the call whose arguments the delta extends; empty = none.
func (d DeltaData) CallID() string {
	if d.DeltaCall == nil {
		return ""
	}
	return d.ToolCallID
}

// From returns the delta without its text before the offset, in bytes of the message.
func (d DeltaData) From(offset int) DeltaData {
	cut := d.Text[:min(offset-d.Offset, len(d.Text))]
	d.Text, d.Offset, d.OffsetUTF16 = d.Text[len(cut):], offset, d.OffsetUTF16+UTF16Len(cut)
	return d
}

// LeanDelta is what a stream shows of a DeltaData.
type LeanDelta struct {
	MessageID   MessageID `json:"message_id"`
	OffsetUTF16 int       `json:"offset_utf16"`
	Text        string    `json:"text"`
	*DeltaCall
}

// DiscardedData is the data of message.discarded.
type DiscardedData struct {
	MessageID MessageID `json:"message_id"`
	Reason    string    `json:"reason"`
}

// NodeModelSlot is the node of node.started while a call of the model waits for one of the configured slots.
const NodeModelSlot = "model_slot"

// NodeData is the data of node.started and node.finished.
type NodeData struct {
	Node string `json:"node"`
	Step int    `json:"step"`
	MS   int64  `json:"ms,omitempty"`     // how long it took, in milliseconds
	Size int    `json:"tokens,omitempty"` // of the prompt that it sent
}

// ToolStartedData is the data of tool.started.
type ToolStartedData struct {
	ToolCallID string `json:"tool_call_id"`
	Name       string `json:"name"`
	Arguments  string `json:"arguments"`
}

// ToolFinishedData is the data of tool.finished.
type ToolFinishedData struct {
	ToolCallID string        `json:"tool_call_id"`
	Status     MessageStatus `json:"status" enum:"complete,failed"`
	Preview    string        `json:"preview"` // the beginning of the result
}

// ApprovalData is the data of approval.requested and approval.decided.
type ApprovalData struct {
	Approval Approval `json:"approval"`
}

// ContextData is the data of the context.* events; what does not apply is left out.
type ContextData struct {
	Kind            SummaryKind `json:"kind,omitempty" enum:"rolling,run" doc:"Of the summary: of the conversation, or notes on the tool loop of a run."`
	TokensBefore    int         `json:"tokens_before,omitempty" doc:"In the prompt."`
	TokensAfter     int         `json:"tokens_after,omitempty"`
	MessagesBefore  int         `json:"messages_before,omitempty" doc:"In the prompt, of kind run."`
	MessagesAfter   int         `json:"messages_after,omitempty"`
	MessagesCovered int         `json:"messages_covered,omitempty"`
	Version         int         `json:"version,omitempty"`
	Trigger         string      `json:"trigger,omitempty"`
	Reason          string      `json:"reason,omitempty" doc:"A text for people."`
	Ahead           bool        `json:"ahead,omitempty" doc:"The summary is prepared in the background; no message waits for it."`
}

// Now returns the present time as Bobbin stores it: UTC, whole microseconds, so
// that a value is the same before and after it was stored.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// DecodeEventData returns the JSON data of an event of the type, from the database, the bus or
// the API, as the struct that events of the type have. Data of a type that this version does
// not know, or that do not fit the struct, stay as they are, as a json.RawMessage.
func DecodeEventData(kind EventType, raw json.RawMessage) any {
	if decode := eventData[kind]; decode != nil {
		return decode(raw)
	}
	return raw
}

//nolint:gochecknoglobals // a constant table
var eventData = map[EventType]func(json.RawMessage) any{
	EventRunQueued: decodeData[MessageData], EventMessageCreated: decodeData[MessageData], EventMessageUpdated: decodeData[MessageData],
	EventRunStarted: decodeData[RunData], EventRunWaiting: decodeData[RunData],
	EventRunSucceeded: decodeData[RunData], EventRunFailed: decodeData[RunData], EventRunCanceled: decodeData[RunData],
	EventMessageStarted: decodeData[StartedData], EventMessageDiscarded: decodeData[DiscardedData], EventMessagesImported: decodeData[ImportedData],
	EventMessageDelta: decodeData[DeltaData], EventReasoningDelta: decodeData[DeltaData], EventArgumentsDelta: decodeData[DeltaData],
	EventNodeStarted: decodeData[NodeData], EventNodeFinished: decodeData[NodeData],
	EventToolStarted: decodeData[ToolStartedData], EventToolFinished: decodeData[ToolFinishedData],
	EventApprovalRequested: decodeData[ApprovalData], EventApprovalDecided: decodeData[ApprovalData],
	EventContextStarted: decodeData[ContextData], EventContextCompleted: decodeData[ContextData], EventContextFailed: decodeData[ContextData],
	EventContextSkipped: decodeData[ContextData], EventContextWarning: decodeData[ContextData],
	EventSessionUpdated: decodeData[SessionData], EventDeliveryUpdated: decodeData[DeliveryData],
	EventSessionHead: func(raw json.RawMessage) any {
		if removed, ok := decodeData[RemovedHead](raw).(RemovedHead); ok && removed.Deleted {
			return removed
		}
		return decodeData[SessionHead](raw)
	},
	EventResync: func(json.RawMessage) any { return nil },
}

// decodeData returns a T, or the data themselves if they are not one.
func decodeData[T any](raw json.RawMessage) any {
	var data T
	if json.Unmarshal(raw, &data) != nil {
		return raw
	}
	return data
}

// Draft is what a run has said so far of the message that it is writing, as it is
// saved now and then in Run.Partial.
type Draft struct {
	Attempt   int       `json:"attempt,omitempty"` // of the run that writes it
	MessageID MessageID `json:"message_id"`        // empty = no message is on its way
	ParentID  MessageID `json:"parent_id,omitempty"`
	Text      string    `json:"text"`
}

// Encode returns the draft as Run.Partial holds it.
func (d Draft) Encode() (string, error) {
	raw, err := json.Marshal(d)
	return string(raw), err
}

// DecodeDraft reads what Encode wrote; anything else is no draft.
func DecodeDraft(partial string) Draft {
	var d Draft
	if partial == "" || json.Unmarshal([]byte(partial), &d) != nil {
		return Draft{}
	}
	return d
}

// Wakeup wakes other processes. It may be lost: what it says is in the database, where
// they look for it now and then.
type Wakeup struct {
	Cancel RunID `json:"cancel,omitempty"` // a run that somebody asked to cancel
	Free   bool  `json:"free,omitempty"`   // there may be runs that nobody works on
	Due    bool  `json:"due,omitempty"`    // there may be deliveries that nobody works on
}

// EventPlace is how far a sweep through the events of all sessions has come, oldest
// first. The zero place is before all of them.
type EventPlace struct {
	At      time.Time
	Session SessionID
	Seq     int64
}

// SweptEvents is one step of such a sweep.
type SweptEvents struct {
	Removed int64
	Next    EventPlace // where the next step goes on
	Done    bool       // nothing old comes after it
}
