// Package contract_test holds the wire shapes of the native API: every route's
// answer, every kind of error and every event, byte by byte as clients see them.
//
// The golden files change with `go test ./tests/contract -update`, and a change in
// them is a change for every client: read it in review.
package contract_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app/api"
	"bobbin/app/api/auth"
	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/document"
	"bobbin/tests/golden"
	"bobbin/tests/must"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// server is the API over the world, with a key of this machine's owner.
func server(b *apitest.World) http.Handler {
	o := b.Options
	o.Auth = auth.New(auth.Options{Keys: []auth.Key{auth.NewKey(core.LocalOwner, "s3cret", core.UserRights)}})
	o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write([]byte("bobbin_runs_active 1\n"))
	})
	o.Checks = []handlers.Check{{Name: "database", Run: b.Hooks["database"]}}
	return api.New(o)
}

// changing are values that are others each time.
var changing = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`), "<id>"},
	{regexp.MustCompile(`20\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?Z)?)?`), "<time>"},
	{regexp.MustCompile(`Last-Modified: .*`), "Last-Modified: <time>"},
	{regexp.MustCompile(`,"ms":\d+`), ""}, // 0 is left out
	{regexp.MustCompile(`("(?:\w*_tokens|tokens|tokens_\w+|token_count|used|planned|free|value|percent|factor|deviation|samples|agent_version|digests|duration_ns)": ?)("[^"]*"|[\d.]+)`), "$1<varies>"},
	{regexp.MustCompile(`expires=\d+&signature=[^"]+`), "expires=<time>&signature=<signature>"},
}

// fixed returns the text with names in the place of ids and times.
func fixed(text string) string {
	for name, id := range map[string]string{
		"session": apitest.SessionID, "question": apitest.UserID, "answer": apitest.AnswerID, "run": apitest.RunID, "waiting session": apitest.WaitingID,
		"waiting run": apitest.WaitingRunID, "approval": apitest.ApprovalID, "memory": apitest.MemoryID, "file": apitest.BlobID, "instruction": apitest.InstructionID,
	} {
		text = strings.ReplaceAll(strings.ReplaceAll(text, id, "<"+name+">"), id[24:], "<"+name+">")
	}
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.as)
	}
	return text
}

// exchange sends the request, holds both sides against the OpenAPI document, and returns them as text.
func exchange(t *testing.T, h http.Handler, method, path, body string, headers ...string) string {
	t.Helper()
	r := apitest.Request(method, path, body, append([]string{"X-Request-ID: request-1"}, headers...)...)
	through := document.NewTransport(t, must.Get(document.Load())(t), transport{h})
	answer := must.Get(through.RoundTrip(r))(t)
	got := must.Get(io.ReadAll(answer.Body))(t)

	var out strings.Builder
	fmt.Fprintf(&out, "%s %s\n", method, path)
	for _, header := range headers {
		fmt.Fprintln(&out, header)
	}
	if body != "" {
		fmt.Fprintf(&out, "\n%s\n", body)
	}
	fmt.Fprintf(&out, "---\n%d\n", answer.StatusCode)
	for _, name := range slices.Sorted(maps.Keys(answer.Header)) {
		fmt.Fprintf(&out, "%s: %s\n", name, answer.Header.Get(name))
	}
	out.WriteString("\n")
	if strings.HasSuffix(answer.Header.Get("Content-Type"), "json") {
		var indented bytes.Buffer
		if err := json.Indent(&indented, got, "", "  "); err != nil {
			t.Fatalf("answer %s is not JSON: %v", got, err)
		}
		got = indented.Bytes()
	}
	out.Write(got)
	return fixed(out.String())
}

// transport is an http.RoundTripper of a handler.
type transport struct{ http.Handler }

// RoundTrip is part of http.RoundTripper.
func (h transport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

// formType is the media type of a form.
const formType = "Content-Type: " + apitest.FormType

func TestAnswers(t *testing.T) {
	t.Parallel()
	session := "/api/v1/sessions/" + apitest.SessionID
	message, memory, run := session+"/messages/"+apitest.UserID, "/api/v1/memories/"+apitest.MemoryID, "/api/v1/runs/"+apitest.RunID
	blob, waiting := "/api/v1/blobs/"+apitest.BlobID, "/api/v1/runs/"+apitest.WaitingRunID
	approval, delivery := waiting+"/approvals/"+apitest.ApprovalID, run+"/deliveries/"+apitest.MissingID
	tests := []struct {
		name, method, path, body string
		headers                  []string
	}{
		{"session_create", "POST", "/api/v1/sessions", `{"agent":"assistant","title":"Greetings","user_id":"u-1","timezone":"Europe/Vienna","instructions":"be brief","tags":["a"],"pinned":true,"metadata":{"team":"a"}}`, nil},
		{"session_create_empty", "POST", "/api/v1/sessions", `{"source":"cli","title":null,"metadata":null}`, nil},
		{"session_list", "GET", "/api/v1/sessions?agent=a&user_id=u&status=running&pinned=false&tag=t&created_after=2026-01-01T00:00:00Z&archived=true&include=summary&order=created&limit=1&cursor=abc", "", nil},
		{"session_search", "GET", "/api/v1/sessions?q=pump&in=title&metadata=%7B%22k%22%3A1%7D", "", nil},
		{"session_get", "GET", session, "", nil},
		{"search", "GET", "/api/v1/search?q=hi&sort=relevance&role=assistant&agent=a&author=Ada&after=2026-01-01T00:00:00Z&all_branches=true&limit=1", "", nil},
		{"problem_search", "GET", "/api/v1/search?role=robot&after=yesterday", "", nil},
		{"session_update", "PATCH", session, `{"title":"Farewells","tags":[],"archived":false,"pinned":true,"force":true}`, nil},
		{"session_archive", "DELETE", session, "", nil},
		{"message_list", "GET", session + "/messages?before=9&after=1&limit=2&all_branches=true&order=desc", "", nil},
		{"message_send_wait", "POST", session + "/messages", `{"content":"Hello","client_message_id":"c-2","model":"house","multitask":"reject","user_id":"u","author":"Ann","source":"web","metadata":{"a":1}}`, nil},
		{"message_send_options", "POST", session + "/messages", `{"content":"Hello","options":{"temperature":0.5,"tool_choice":"look","tools":[{"name":"look","parameters":{"type":"object"}}]}}`, []string{"Prefer: respond-async"}},
		{"problem_options", "POST", session + "/messages", `{"content":"Hello","options":{"temprature":0.5}}`, nil},
		{"problem_options_type", "POST", session + "/messages", `{"content":"Hello","options":{"temperature":"hot"}}`, nil},
		{"message_send_wait_briefly", "POST", session + "/messages", `{"content":"Hello"}`, []string{"Prefer: respond-async, wait=5"}},
		{"problem_options_dialect", "POST", message + "/regenerate", `{"options":{"response":{"background":true}}}`, nil},
		{"message_send_async", "POST", session + "/messages", `{"content":"Hello"}`, []string{"Prefer: respond-async"}},
		{"message_send_stream", "POST", session + "/messages", `{"content":"Hello"}`, []string{"Accept: text/event-stream"}},
		{"message_after", "POST", session + "/messages", `{"content":"Hello!","after":"start"}`, []string{"Prefer: respond-async"}},
		{"message_edit", "PATCH", message, `{"content":"Hello!","client_message_id":"c-3"}`, []string{"Prefer: respond-async"}},
		{"message_revise", "PATCH", message, `{"content":"Hello!","run":false}`, nil},
		{"message_regenerate", "POST", message + "/regenerate", `{"client_message_id":"c","model":"house","multitask":"reject","user_id":"u","source":"web"}`, []string{"Prefer: respond-async"}},
		{"message_select", "POST", message + "/select", "", nil},
		{"message_delete", "DELETE", message, "", nil},
		{"message_pin", "PUT", message + "/pin", `{"pinned":true}`, nil},
		{"message_get", "GET", message, "", nil},
		{"message_unpin", "DELETE", message + "/pin", "", nil},
		{"message_metadata", "PUT", message + "/metadata", `{"metadata":{"label":"important"}}`, nil},
		{"message_feedback", "PUT", message + "/feedback", `{"rating":"down","comment":"The date is wrong."}`, nil},
		{"message_feedback_delete", "DELETE", message + "/feedback", "", nil},
		{"problem_feedback", "PUT", message + "/feedback", `{}`, nil},
		{"session_slack_put", "PUT", session + "/slack", `{"team":"T012ABCDEF","channel":"C012ABCDEF","thread":"1700000000.000100","mode":"to_slack"}`, nil},
		{"session_slack_delete", "DELETE", session + "/slack", "", nil},
		{"session_fork", "POST", session + "/fork", `{"message_id":"` + apitest.AnswerID + `"}`, nil},
		{"problem_pin", "PUT", message + "/pin", `{}`, nil},
		{"problem_no_message", "PATCH", session + "/messages/x", `{"content":"Hello!"}`, nil},
		{"message_append", "POST", session + "/messages", `{"run":false,"role":"tool","content":"391","tool_call_id":"call-1","tool_name":"calculator","created_at":"2025-12-31T23:59:59Z"}`, nil},
		{"message_append_again", "POST", session + "/messages", `{"run":false,"content":"Hello","client_message_id":"known"}`, nil},
		{"message_import", "POST", session + "/messages/import", `{"role":"user","content":"Hi"}` + "\n" + `{"role":"assistant","content":"Hello"}`, []string{"Content-Type: application/jsonl"}},
		{"session_export", "GET", session + "/export", "", nil},
		{"session_export_jsonl", "GET", session + "/export?format=jsonl", "", nil},
		{"session_export_markdown", "GET", session + "/export?format=markdown", "", nil},
		{"message_send_form", "POST", session + "/messages", apitest.Form("message", `{"content":"Hello"}`), []string{formType, "Prefer: respond-async"}},
		{"deletion_create", "POST", "/api/v1/deletions", `{"session_id":"` + apitest.SessionID + `"}`, nil},
		{"deletion_create_user", "POST", "/api/v1/deletions", `{"user_id":"ada"}`, nil},
		{"problem_deletion", "POST", "/api/v1/deletions", `{}`, nil},
		{"problem_deletion_key", "POST", "/api/v1/deletions", `{"user_id":"ada"}`, []string{"Idempotency-Key: k-1"}},
		{"user_export", "GET", "/api/v1/export?user_id=ada", "", nil},
		{"blob_upload", "POST", "/api/v1/blobs", apitest.Form("session_id", apitest.SessionID), []string{formType}},
		{"blob_list", "GET", "/api/v1/blobs?session_id=" + apitest.SessionID, "", nil},
		{"blob_info", "GET", blob + "/info", "", nil},
		{"blob_link", "POST", blob + "/link", `{"expires_in": 60}`, nil},
		{"blob_content_expired", "GET", blob + "/content?expires=1&signature=old", "", nil},
		{"blob_delete", "DELETE", blob, "", nil},
		{"blob_get", "GET", blob, "", nil},
		{"blob_get_again", "GET", blob, "", []string{`If-None-Match: "ea14f99c47575613ab22111122c847728c61007f6bfd7b062d02fcb99df3feb0"`}},
		{"run_get", "GET", run, "", nil},
		{"run_list", "GET", session + "/runs", "", nil},
		{"run_events", "GET", run + "/events", "", []string{"Last-Event-ID: 3"}},
		{"delivery_list", "GET", run + "/deliveries", "", nil},
		{"delivery_retry", "POST", delivery + "/retry", "", nil},
		{"session_create_temporary", "POST", "/api/v1/sessions", `{"temporary":true}`, nil},
		{"session_create_webhook", "POST", "/api/v1/sessions", `{"webhook":{"url":"https://example.com/hook?token=t","secret":"whsec_s"}}`, nil},
		{"webhook_get", "GET", "/api/v1/webhook", "", nil},
		{"webhook_put", "PUT", "/api/v1/webhook", `{"url":"https://example.com/hook?token=t","secret":"whsec_s"}`, nil},
		{"webhook_delete", "DELETE", "/api/v1/webhook", "", nil},
		{"run_cancel", "POST", run + "/cancel", "", nil},
		{"run_approval", "POST", approval, `{"decision":"deny","comment":"Too much."}`, nil},
		{"run_approval_edited", "POST", approval, `{"decision":"approve","arguments":{"zone":"CET"}}`, nil},
		{"run_approval_result", "POST", approval, `{"result":"14:05","is_error":true}`, nil},
		{"run_approval_failed_denial", "POST", approval, `{"decision":"deny","is_error":true}`, nil},
		{"run_approval_two_answers", "POST", approval, `{"decision":"deny","result":"14:05"}`, nil},
		{"run_cancel_wait", "POST", run + "/cancel", `{"wait":true}`, nil},
		{"context", "GET", session + "/context", "", nil},
		{"instruction_list", "GET", session + "/standing-instructions?limit=7&cursor=abc", "", nil},
		{"instruction_add", "POST", session + "/standing-instructions", `{"text":"Be brief."}`, nil},
		{"instruction_edit", "PATCH", session + "/standing-instructions/" + apitest.InstructionID, `{"text":"Be brief."}`, nil},
		{"instruction_remove", "DELETE", session + "/standing-instructions/" + apitest.InstructionID, "", nil},
		{"summarize", "POST", session + "/summarize", `{"focus":"names"}`, nil},
		{"summary_list", "GET", session + "/summaries", "", nil},
		{"summary_get", "GET", session + "/summaries/1", "", nil},
		{"summary_edit", "PUT", session + "/summary", `{"content":"They greeted each other twice.","version":1}`, nil},
		{"summary_restore", "POST", session + "/summaries/0/restore", "", nil},
		{"agent_list", "GET", "/api/v1/agents", "", nil},
		{"agent_get", "GET", "/api/v1/agents/assistant", "", nil},
		{"agent_graph_mermaid", "GET", "/api/v1/agents/assistant/graph?format=mermaid", "", nil},
		{"memory_create", "POST", "/api/v1/memories", `{"user_id":"u-1","content":"The inspection is on Friday.","metadata":{"source":"mail"}}`, nil},
		{"memory_list", "GET", "/api/v1/memories?user_id=u-1&limit=7&cursor=abc", "", nil},
		{"memory_get", "GET", memory + "?user_id=u-1", "", nil},
		{"memory_update", "PUT", memory, `{"content":"The inspection is on Monday."}`, nil},
		{"memory_delete", "DELETE", memory + "?user_id=u-1", "", nil},
		{"healthz", "GET", "/healthz", "", nil},
		{"readyz", "GET", "/readyz", "", nil},
		{"version", "GET", "/version", "", nil},
		{"metrics", "GET", "/metrics", "", nil},
		{"problem_not_found", "GET", "/api/v1/sessions/" + apitest.MissingID, "", nil},
		{"problem_no_such_route", "GET", "/api/v1/chats", "", nil},
		{"problem_method", "PUT", session, "", nil},
		{"problem_fields", "POST", session + "/messages", `{"contents":"Hello","multitask":7}`, nil},
		{"problem_malformed", "POST", session + "/messages", `{"content":`, nil},
		{"problem_media_type", "POST", session + "/messages", `content=Hello`, []string{"Content-Type: application/x-www-form-urlencoded"}},
		{"problem_query", "GET", "/api/v1/sessions?limit=1000", "", nil},
		{"problem_unauthorized", "GET", "/api/v1/sessions", "", []string{"X-API-Key: wrong"}},
		{"problem_forbidden", "GET", "/api/v1/sessions", "", []string{"Origin: https://evil.example"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			backend := apitest.New(t)
			backend.Hooks["database"] = answering(nil)
			got := exchange(t, server(backend), tt.method, tt.path, tt.body, tt.headers...)
			golden.Check(t, "testdata/"+tt.name+".txt", strings.TrimSuffix(got, "\n")+"\n")
		})
	}
}

// TestIdempotency: the first answer, the same again, and what another request with
// the same key is told.
func TestIdempotency(t *testing.T) {
	t.Parallel()
	backend := apitest.New(t)
	backend.Hooks["database"] = answering(nil)
	h := server(backend)
	const key = "Idempotency-Key: order-66"
	exchange(t, h, "POST", "/api/v1/sessions", `{"title":"Greetings"}`, key)
	golden.Check(t, "testdata/session_create_again.txt", exchange(t, h, "POST", "/api/v1/sessions", `{"title":"Greetings"}`, key))
	golden.Check(t, "testdata/problem_key_reused.txt", exchange(t, h, "POST", "/api/v1/sessions", `{"title":"Farewells"}`, key))
	backend.Hooks["Sessions.Create"] = func(context.Context) error {
		golden.Check(t, "testdata/problem_in_progress.txt", exchange(t, h, "POST", "/api/v1/sessions", "{}", "Idempotency-Key: slow"))
		return nil
	}
	exchange(t, h, "POST", "/api/v1/sessions", "{}", "Idempotency-Key: slow")
	golden.Check(t, "testdata/problem_key.txt", exchange(t, h, "POST", "/api/v1/sessions", `{}`, "Idempotency-Key: "+strings.Repeat("k", 201)))
}

// TestFailures: errors that come from within.
func TestFailures(t *testing.T) {
	t.Parallel()
	tests := map[string]error{
		"problem_internal":      fmt.Errorf("read row: disk on fire"),
		"problem_conflict":      core.Errorf(core.ErrConflict, "a summary is being made"),
		"problem_rate_limited":  core.Errorf(core.ErrRateLimited, "100 messages wait in this session"),
		"problem_spend_limit":   core.ErrSpendLimit("5 US dollars", time.Date(2026, 1, 2, 23, 0, 0, 0, time.UTC), time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)),
		"problem_context_floor": core.Errorf(core.ErrContextFloor, "the system prompt alone has 9000 tokens, the model's window 8192"),
		"problem_in_a_stream":   core.Errorf(core.ErrUnavailable, "the server is stopping"),
		"readyz_not_ready":      fmt.Errorf("connection refused"),
	}
	for name, err := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend := apitest.New(t)
			backend.Hooks["database"], backend.Hooks["Events.Last"], backend.Hooks["Sessions.Create"] = answering(err), answering(err), answering(err)
			switch name {
			case "readyz_not_ready":
				golden.Check(t, "testdata/"+name+".txt", exchange(t, server(backend), "GET", "/readyz", ""))
			case "problem_in_a_stream":
				golden.Check(t, "testdata/"+name+".txt", exchange(t, server(backend), "GET", "/api/v1/runs/"+apitest.RunID+"/events", ""))
			default:
				golden.Check(t, "testdata/"+name+".txt", exchange(t, server(backend), "POST", "/api/v1/sessions", "{}"))
			}
		})
	}
}

func answering(err error) apitest.Hook {
	return func(_ context.Context) error { return err }
}

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
		must.True(t, err == nil, "frame of %s: %v", tt.kind, err)
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
