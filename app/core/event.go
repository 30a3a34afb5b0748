package core

import (
	"encoding/json"
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
	EventMessageDelta   EventType = "message.delta"
	EventReasoningDelta EventType = "reasoning.delta"
	EventResync         EventType = "resync" // the number asked for is not kept, or not of this database: load messages, go on; has the number of the newest event
)

// Event is something that happened in a session.
type Event struct {
	SessionID SessionID
	Seq       int64 // 1, 2, 3 … in the session; 0 = a passing event. Of a resync: that after which it goes on
	Type      EventType
	RunID     RunID // empty = not of a run
	At        time.Time
	Data      json.RawMessage // a JSON object of the fields that API.md lists for the type
}

// From says where in a session's events a watcher begins.
type From struct {
	After int64 // number of the last durable event that is known already; 0 = none, so all that are kept
	Live  bool  // only what happens from now on; After is ignored
}

// NewEvent returns an event of now whose data is data as JSON. Data must be a
// struct or map of plain values: it panics on what JSON cannot say.
func NewEvent(session SessionID, run RunID, kind EventType, data any) Event {
	raw, err := json.Marshal(data)
	if err != nil {
		panic("core: event data: " + err.Error())
	}
	return Event{SessionID: session, RunID: run, Type: kind, At: Now(), Data: raw}
}

// MessageData is the data of run.queued, message.created and message.updated.
type MessageData struct {
	Message Message `json:"message"`
}

// RunData is the data of run.started, run.waiting, run.succeeded, run.failed and run.canceled.
type RunData struct {
	Run Run `json:"run"`
}

// DeltaData is the data of message.delta and reasoning.delta.
type DeltaData struct {
	MessageID MessageID `json:"message_id"`
	Attempt   int       `json:"attempt"`
	Offset    int       `json:"offset"` // where Text begins in the message, in bytes of UTF-8
	Text      string    `json:"text"`
}

// DiscardedData is the data of message.discarded.
type DiscardedData struct {
	MessageID MessageID `json:"message_id"`
	Reason    string    `json:"reason"`
}

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
	Status     MessageStatus `json:"status"`
	Preview    string        `json:"preview"` // the beginning of the result
}

// ApprovalData is the data of approval.requested and approval.decided.
type ApprovalData struct {
	Approval Approval `json:"approval"`
}

// ContextData is the data of the context.* events; what does not apply is left out.
type ContextData struct {
	Kind            SummaryKind `json:"kind,omitempty"` // of the summary
	TokensBefore    int         `json:"tokens_before,omitempty"`
	TokensAfter     int         `json:"tokens_after,omitempty"`
	MessagesBefore  int         `json:"messages_before,omitempty"` // in the prompt
	MessagesAfter   int         `json:"messages_after,omitempty"`
	MessagesCovered int         `json:"messages_covered,omitempty"`
	Version         int         `json:"version,omitempty"`
	Trigger         string      `json:"trigger,omitempty"`
	Reason          string      `json:"reason,omitempty"`
	Ahead           bool        `json:"ahead,omitempty"` // of a summary that is prepared: nobody waits for it
}

// Now returns the present time as Bobbin stores it: UTC, whole microseconds, so
// that a value is the same before and after it was stored.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
