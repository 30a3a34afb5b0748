package contract_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/tests/document"
	"bobbin/tests/golden"
	"bobbin/tests/must"
)

// TestEvents: the data of every event (API, events).
func TestEvents(t *testing.T) {
	t.Parallel()
	b := samples()
	failed := b.Run
	failed.Status, failed.AnswerID, failed.Error = core.RunFailed, "", &core.RunError{Code: "model_auth", Message: "the provider refused the key"}
	waiting := b.Accepted
	waiting.Status = core.RunWaiting
	denied, decided := approval(), at()
	denied.Status, denied.Comment, denied.DecidedBy, denied.DecidedAt = core.ApprovalDenied, "Too much.", "local", &decided
	canceled := b.Run
	canceled.Status = core.RunCanceled
	asked := b.Messages[1]
	asked.Content, asked.FinishReason = "", core.FinishToolCalls
	asked.ToolCalls = []core.ToolCall{{ID: "call-1", Name: "current_time", Arguments: `{"zone": "UTC"}`}}
	result := core.Message{ID: queuedID, SessionID: sessionID, Seq: 3, ParentID: asked.ID, OnPath: true, Role: core.RoleTool, Content: "03:04",
		Status: core.MessageComplete, ToolCallID: "call-1", ToolName: "current_time", TokenCount: 7, Source: core.SourceAPI, RunID: runID, CreatedAt: at()}
	tests := []struct {
		kind core.EventType
		data any
	}{
		{core.EventRunQueued, core.MessageData{Message: b.Queued.UserMessage()}},
		{core.EventRunStarted, core.RunData{Run: b.Accepted}},
		{core.EventMessageCreated, core.MessageData{Message: b.Messages[0]}},
		{core.EventNodeStarted, core.NodeData{Node: "llm_node", Step: 4}},
		{core.EventNodeFinished, core.NodeData{Node: "llm_node", Step: 4, MS: 12, Size: 120}},
		{core.EventMessageStarted, core.StartedData{MessageID: asked.ID, Role: core.RoleAssistant, ParentID: b.Messages[0].ID, Attempt: 1}},
		{core.EventReasoningDelta, core.DeltaData{MessageID: asked.ID, ParentID: b.Messages[0].ID, Attempt: 1, Text: "Hm."}},
		{core.EventMessageDelta, core.DeltaData{MessageID: asked.ID, ParentID: b.Messages[0].ID, Attempt: 1, Offset: 4, OffsetUTF16: 2, Text: "é\n"}},
		{core.EventMessageCreated, core.MessageData{Message: asked}},
		{core.EventToolStarted, core.ToolStartedData{ToolCallID: "call-1", Name: "current_time", Arguments: `{"zone": "UTC"}`}},
		{core.EventToolFinished, core.ToolFinishedData{ToolCallID: "call-1", Status: core.MessageComplete, Preview: "03:04"}},
		{core.EventApprovalRequested, core.ApprovalData{Approval: approval()}},
		{core.EventRunWaiting, core.RunData{Run: waiting}},
		{core.EventApprovalDecided, core.ApprovalData{Approval: denied}},
		{core.EventMessageCreated, core.MessageData{Message: result}},
		{core.EventMessagesImported, core.ImportedData{Imported: 1234, FirstSeq: 4, LastSeq: 1237}},
		{core.EventMessageUpdated, core.MessageData{Message: b.Messages[1]}},
		{core.EventMessageDiscarded, core.DiscardedData{MessageID: asked.ID, Reason: "attempt 1 was lost"}},
		{core.EventContextStarted, core.ContextData{Kind: core.SummaryRolling, TokensBefore: 7000, Trigger: "share"}},
		{core.EventContextCompleted, core.ContextData{Kind: core.SummaryRolling, TokensBefore: 7000, TokensAfter: 3000, MessagesCovered: 25, Version: 2, Trigger: "share"}},
		{core.EventContextCompleted, core.ContextData{Kind: core.SummaryRun, TokensBefore: 7000, TokensAfter: 3000, MessagesBefore: 20, MessagesAfter: 11, MessagesCovered: 10, Version: 3, Trigger: "iterations"}},
		{core.EventContextFailed, core.ContextData{Trigger: "share", Reason: "the summary model timed out"}},
		{core.EventContextSkipped, core.ContextData{Trigger: "messages", Reason: "nothing to summarize"}},
		{core.EventContextWarning, core.ContextData{TokensBefore: 6100, Reason: "85 % of the trigger"}},
		{core.EventRunSucceeded, core.RunData{Run: b.Run}},
		{core.EventRunFailed, core.RunData{Run: failed}},
		{core.EventRunCanceled, core.RunData{Run: canceled}},
		{core.EventDeliveryUpdated, core.DeliveryData{DeliveryID: deliveryID, Kind: core.DeliveryWebhook, Event: core.EventRunSucceeded, State: core.DeliveryFailed, Attempt: 8, Error: "the receiver did not answer in time"}},
		{core.EventResync, nil},
		{core.EventSessionHead, core.SessionHead{Title: "Greetings", Agent: "assistant", UserID: "u-1", Source: core.SourceWeb, Status: core.SessionWaiting, MessageCount: 2, LastEvent: 4,
			UpdatedAt: at(), Waiting: &core.WaitingFor{RunID: runID, ApprovalID: approval().ID, Tool: "fetch_url"}}},
		{core.EventSessionHead, core.RemovedHead{Deleted: true}},
		{core.EventSessionUpdated, core.SessionData{Session: b.Session, Path: &core.PathChange{AfterID: userID, AfterSeq: 1, LeafID: answerID}}},
		{core.EventSessionUpdated, core.SessionData{Session: b.Session, Slack: core.SlackChange{Changed: true, Thread: &core.SlackThread{SessionID: sessionID, Team: "T1", Channel: "C1", Thread: "1.000001", Mode: core.SlackTwoWay}}}},
		{core.EventSessionUpdated, core.SessionData{Session: b.Session, Slack: core.SlackChange{Changed: true}}},
	}
	described := must.Get(document.Load())(t).Find("GET", "/api/v1/runs/"+string(runID)+"/events").Answers[200]
	var out strings.Builder
	for i, tt := range tests {
		run := runID
		if tt.kind == core.EventResync || tt.kind == core.EventSessionHead {
			run = ""
		}
		e := core.NewEvent(sessionID, run, tt.kind, tt.data)
		e.At, e.Seq = at(), int64(i+1)
		switch tt.kind {
		case core.EventNodeStarted, core.EventNodeFinished, core.EventMessageStarted, core.EventMessageDelta, core.EventReasoningDelta, core.EventSessionHead:
			e.Seq = 0
		}
		wantRoundTrip(t, e)
		frame, err := handlers.AppendEvent(nil, e)
		if err != nil {
			t.Fatalf("frame of %s: %v", tt.kind, err)
		}
		if name, data, ok := document.Frame(frame); !ok || described.CheckEvent(name, data) != nil {
			t.Errorf("%s: %v", frame, described.CheckEvent(name, data))
		}
		out.Write(frame)
	}
	golden.Check(t, "testdata/events.txt", out.String())
}

// wantRoundTrip checks that readers of the event's JSON, as of the database and the API, get a
// struct that says the same.
func wantRoundTrip(t *testing.T, e core.Event) {
	t.Helper()
	if e.Data == nil {
		return
	}
	raw := must.Get(json.Marshal(e.Data))(t)
	data := core.DecodeEventData(e.Type, raw)
	again, err := json.Marshal(data)
	if _, undecoded := data.(json.RawMessage); undecoded || err != nil || string(again) != string(raw) {
		t.Errorf("data of %s: got %T %s, %v, want %s", e.Type, data, again, err, raw)
	}
}

// IDs of what the events tell of.
const (
	sessionID  = core.SessionID("01920000-0000-7000-8000-000000000001")
	userID     = core.MessageID("01920000-0000-7000-8000-000000000011")
	answerID   = core.MessageID("01920000-0000-7000-8000-000000000012")
	queuedID   = core.MessageID("01920000-0000-7000-8000-000000000013")
	runID      = core.RunID("01920000-0000-7000-8000-000000000021")
	deliveryID = core.DeliveryID("01920000-0000-7000-8000-000000000051")
)

// at is the time of everything.
func at() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678900000, time.UTC) }

// sampled is what the events tell of.
type sampled struct {
	Session               core.Session
	Messages              []core.Message
	Run, Queued, Accepted core.Run // that has ended, waits, and is at work
}

func samples() (b sampled) {
	now, summary, through := at(), "They greeted each other.", userID
	b.Run = core.Run{
		ID: runID, SessionID: sessionID, QueueSeq: 1, Status: core.RunSucceeded, Agent: "assistant", AgentVersion: "v1",
		Input: core.RunInput{Content: "Hello", Source: core.SourceAPI, TokenCount: 5}, UserMessageID: userID, ClientMessageID: "c-1",
		Multitask: core.MultitaskEnqueue, Attempt: 1, Usage: core.Usage{InputTokens: 12, OutputTokens: 3}, AnswerID: answerID, CreatedAt: now, StartedAt: &now, FinishedAt: &now,
	}
	b.Accepted, b.Queued = b.Run, b.Run
	b.Accepted.Status, b.Accepted.FinishedAt, b.Accepted.AnswerID, b.Accepted.Usage = core.RunRunning, nil, "", core.Usage{}
	b.Queued.ID, b.Queued.Status, b.Queued.QueueSeq, b.Queued.UserMessageID, b.Queued.ClientMessageID = "01920000-0000-7000-8000-000000000022", core.RunQueued, 2, queuedID, "c-2"
	b.Queued.Attempt, b.Queued.Usage, b.Queued.AnswerID, b.Queued.StartedAt, b.Queued.FinishedAt = 0, core.Usage{}, "", nil, nil
	b.Queued.Input.Content = "And then?"
	b.Session = core.Session{
		ID: sessionID, Agent: "assistant", Title: "Greetings", UserID: "u-1", Source: core.SourceAPI, Timezone: "Europe/Vienna",
		Metadata: json.RawMessage(`{"team":"a"}`), MessageCount: 2, SummarizedCount: 1, SummaryCount: 1, ConversationSummary: &summary,
		SummaryThroughID: &through, SummaryVersion: 1, LastSummarizedAt: &now, CreatedAt: now, UpdatedAt: now, LastEventSeq: 4,
		Status: core.SessionWaiting, ActiveRunID: runID, OpenApprovals: 1,
	}
	question := b.Run.UserMessage()
	question.Seq = 1
	b.Messages = []core.Message{question, {
		ID: answerID, SessionID: sessionID, Seq: 2, ParentID: userID, OnPath: true, Role: core.RoleAssistant, Content: "Hi <there>", Status: core.MessageComplete,
		Model: "demo", FinishReason: core.FinishStop, TokenCount: 6, Source: core.SourceAPI, RunID: runID, CreatedAt: now,
	}}
	return b
}

// approval is a pending one of the run.
func approval() core.Approval {
	until := at().AddDate(0, 0, 1)
	return core.Approval{
		ID: "01920000-0000-7000-8000-000000000051", Kind: core.KindApproval, RunID: runID, SessionID: sessionID, ToolCallID: "call-1", Tool: "current_time", Arguments: `{"zone": "UTC"}`,
		Mode: core.ApprovalAlways, Status: core.ApprovalOpen, RequestedAt: at(), ExpiresAt: &until,
	}
}
