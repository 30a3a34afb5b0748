package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/api"
	"bobbin/app/core"
	"bobbin/tests/apitest"
)

// messagePath is where a message of the backend is.
const messagePath = sessionPath + "/messages/" + string(apitest.UserID)

const instructionPath = sessionPath + "/standing-instructions/" + string(apitest.InstructionID)

// TestEndpoints asks every route what it is for. The shapes of the answers are in
// tests/contract.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	local := core.Tenant{Owner: core.LocalOwner}
	user := core.Tenant{Owner: core.LocalOwner, User: "u"}
	title := "New"
	tests := []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		contains                 string
		calls                    []apitest.Call // nil = not compared
	}{
		{"create", "POST", "/api/v1/sessions", `{"agent":"a","title":"T","user_id":"u","timezone":"UTC","instructions":"be brief","metadata":{"k":1}}`, nil, 201, `"title":"T"`,
			[]apitest.Call{{Method: "CreateSession", Scope: local, Args: []any{core.Session{Agent: "a", Title: "T", UserID: "u", Timezone: "UTC",
				Instructions: "be brief", Source: core.SourceAPI, Metadata: json.RawMessage(`{"k":1}`)}}}}},
		{"create from nothing", "POST", "/api/v1/sessions", "", nil, 201, `"id"`,
			[]apitest.Call{{Method: "CreateSession", Scope: local, Args: []any{core.Session{Source: core.SourceAPI}}}}},
		{"create as the command line, null is nothing", "POST", "/api/v1/sessions", `{"source":"cli","title":null,"metadata":null}`, nil, 201, `"source":"cli"`, nil},
		{"list", "GET", "/api/v1/sessions?agent=a&user_id=u&archived=true&limit=7&cursor=abc", "", nil, 200, `"next_cursor":"next"`,
			[]apitest.Call{{Method: "Sessions.List", Scope: local, Args: []any{core.SessionQuery{
				PageQuery: core.PageQuery{Limit: 7, Cursor: "abc"}, Agent: "a", UserID: "u", Archived: true}}}}},
		{"get", "GET", sessionPath, "", nil, 200, `"summary_version":1`, nil},
		{"update", "PATCH", sessionPath, `{"title":"New"}`, nil, 200, `"title":"New"`,
			[]apitest.Call{{Method: "UpdateSession", Scope: local, Args: []any{apitest.SessionID, core.SessionPatch{Title: &title}}}}},
		{"bring back", "PATCH", sessionPath, `{"archived":false}`, nil, 200, `"id"`,
			[]apitest.Call{{Method: "UpdateSession", Scope: local, Args: []any{apitest.SessionID, core.SessionPatch{Archived: new(false)}}}}},
		{"archive", "DELETE", sessionPath, "", nil, 204, "",
			[]apitest.Call{{Method: "UpdateSession", Scope: local, Args: []any{apitest.SessionID, core.SessionPatch{Archived: new(true)}}}}},
		{"messages", "GET", sessionPath + "/messages?before=9&after=1&limit=2&all_branches=true", "", nil, 200, `"pending":[{"id":"` + string(apitest.QueuedID),
			[]apitest.Call{
				{Method: "Sessions.Get", Scope: local, Args: []any{apitest.SessionID}},
				{Method: "Runs.Pending", Scope: local, Args: []any{apitest.SessionID}},
				{Method: "Messages.List", Scope: local, Args: []any{apitest.SessionID, core.MessageQuery{
					PageQuery: core.PageQuery{Limit: 2}, Before: 9, After: 1, AllBranches: true}}},
			}},
		{"send and wait", "POST", sessionPath + "/messages",
			`{"content":"Hello","client_message_id":"c-1","model":"m","multitask":"reject","user_id":"u","author":"Ann","source":"web","metadata":{"a":1}}`, nil, 200, `"message":{"id":"` + string(apitest.AnswerID),
			[]apitest.Call{
				{Method: "Send", Scope: local, Args: []any{core.SendMessage{SessionID: apitest.SessionID, User: "u", Content: "Hello", ClientMessageID: "c-1", Model: "m",
					Multitask: core.MultitaskReject, Source: core.SourceWeb, Author: "Ann", Metadata: json.RawMessage(`{"a":1}`)}}},
				{Method: "Wait", Scope: local, Args: []any{apitest.RunID}},
				{Method: "Messages.Get", Scope: local, Args: []any{apitest.SessionID, apitest.AnswerID}},
			}},
		{"send async", "POST", sessionPath + "/messages", `{"content":"Hello"}`, []string{"Prefer: respond-async"}, 202, `{"run":{"id":"`, nil},
		{"send async, wait a little", "POST", sessionPath + "/messages", `{"content":"Hello"}`, []string{"Prefer: respond-async, wait=5"}, 200, `"message":{"id"`, nil},
		{"edit", "PATCH", messagePath, `{"content":"Hello!","multitask":"interrupt"}`, nil, 200, `"message":{"id":"` + string(apitest.AnswerID),
			[]apitest.Call{
				{Method: "Send", Scope: local, Args: []any{core.SendMessage{SessionID: apitest.SessionID, Edits: apitest.UserID, Content: "Hello!",
					Multitask: core.MultitaskInterrupt, Source: core.SourceAPI}}},
				{Method: "Wait", Scope: local, Args: []any{apitest.RunID}},
				{Method: "Messages.Get", Scope: local, Args: []any{apitest.SessionID, apitest.AnswerID}},
			}},
		{"regenerate", "POST", messagePath + "/regenerate", `{"client_message_id":"c","model":"m","multitask":"reject","user_id":"u","source":"web"}`,
			[]string{"Prefer: respond-async"}, 202, `"regenerate":true`,
			[]apitest.Call{{Method: "Regenerate", Scope: local, Args: []any{core.Regenerate{SessionID: apitest.SessionID, MessageID: apitest.UserID,
				User: "u", ClientMessageID: "c", Model: "m", Multitask: core.MultitaskReject, Source: core.SourceWeb}}}}},
		{"regenerate as a stream", "POST", messagePath + "/regenerate", "", []string{"Accept: text/event-stream"}, 200, "event: run.succeeded", nil},
		{"regenerate, wrong source", "POST", messagePath + "/regenerate", `{"source":"slack"}`, nil, 422, `"source"`, nil},
		{"regenerate, option of a dialect", "POST", messagePath + "/regenerate", `{"options":{"response":{"background":true}}}`, nil, 422, `unknown field \"response\"`, nil},
		{"regenerate, wrong field", "POST", messagePath + "/regenerate", `{"content":"x"}`, nil, 422, "is not a known field", nil},
		{"select", "POST", messagePath + "/select", "", nil, 200, `"summary_version":1`,
			[]apitest.Call{{Method: "Select", Scope: local, Args: []any{apitest.SessionID, apitest.UserID}}}},
		{"select, wrong field", "POST", messagePath + "/select", `{"x":1}`, nil, 422, "is not a known field", nil},
		{"pin", "PUT", messagePath + "/pin", `{"pinned":false}`, nil, 200, `"pinned":false`,
			[]apitest.Call{{Method: "Pin", Scope: local, Args: []any{apitest.SessionID, apitest.UserID, false}}}},
		{"delete a message", "DELETE", messagePath, "", nil, 204, "",
			[]apitest.Call{{Method: "DeleteMessage", Scope: local, Args: []any{apitest.SessionID, apitest.UserID}}}},
		{"fork", "POST", sessionPath + "/fork", "", nil, 201, `(fork)`,
			[]apitest.Call{{Method: "Fork", Scope: local, Args: []any{core.ForkSession{SessionID: apitest.SessionID}}}}},
		{"fork at nothing", "POST", sessionPath + "/fork", `{"message_id":"x"}`, nil, 404, "message x does not exist", nil},
		{"no such message", "DELETE", sessionPath + "/messages/x", "", nil, 404, "message x does not exist", nil},
		{"context", "GET", sessionPath + "/context", "", nil, 200, `"will_trigger":false`, nil},
		{"prompt", "GET", sessionPath + "/context/prompt", "", nil, 200, `"placement":"verbatim"`, nil},
		{"summarize", "POST", sessionPath + "/summarize", `{"focus":"names"}`, nil, 200, `"focus":"names"`, nil},
		{"summarize without a body", "POST", sessionPath + "/summarize", "", nil, 200, `"version":1`,
			[]apitest.Call{{Method: "Summarize", Scope: local, Args: []any{apitest.SessionID, ""}}}},
		{"summaries", "GET", sessionPath + "/summaries?limit=200", "", nil, 200, `"next_cursor":null`, nil},
		{"summary", "GET", sessionPath + "/summaries/1", "", nil, 200, `"state":"active"`, nil},
		{"standing instructions", "GET", sessionPath + "/standing-instructions?limit=7&cursor=abc", "", nil, 200, `"items":[{"id":"`,
			[]apitest.Call{{Method: "StandingInstructions", Scope: local, Args: []any{apitest.SessionID, core.PageQuery{Limit: 7, Cursor: "abc"}}}}},
		{"add an instruction", "POST", sessionPath + "/standing-instructions", `{"text":"Be brief."}`, nil, 201, `"text":"Be brief."`,
			[]apitest.Call{{Method: "AddInstruction", Scope: local, Args: []any{apitest.SessionID, "Be brief."}}}},
		{"add an instruction, wrong field", "POST", sessionPath + "/standing-instructions", `{"content":"x"}`, nil, 422, "is not a known field", nil},
		{"edit an instruction", "PATCH", instructionPath, `{"text":"Be brief."}`, nil, 200, `"edited_at":`,
			[]apitest.Call{{Method: "EditInstruction", Scope: local, Args: []any{apitest.SessionID, apitest.InstructionID, "Be brief."}}}},
		{"remove an instruction", "DELETE", instructionPath, "", nil, 204, "",
			[]apitest.Call{{Method: "RemoveInstruction", Scope: local, Args: []any{apitest.SessionID, apitest.InstructionID}}}},
		{"no such instruction", "DELETE", sessionPath + "/standing-instructions/x", "", nil, 404, "standing instruction x does not exist", nil},
		{"runs", "GET", sessionPath + "/runs", "", nil, 200, `"status":"queued"`, nil},
		{"run", "GET", runPath, "", nil, 200, `"status":"running"`, nil},
		{"cancel", "POST", runPath + "/cancel", "", nil, 202, `"cancel_requested":true`,
			[]apitest.Call{{Method: "Cancel", Scope: local, Args: []any{apitest.RunID, false}}}},
		{"cancel and wait", "POST", runPath + "/cancel", `{"wait":true}`, nil, 200, `"status":"canceled"`,
			[]apitest.Call{{Method: "Cancel", Scope: local, Args: []any{apitest.RunID, true}}}},
		{"agents", "GET", "/api/v1/agents", "", nil, 200, `{"items":[{"name":"assistant"`, nil},
		{"agent", "GET", "/api/v1/agents/assistant", "", nil, 200, `"version":"v1"`, nil},
		{"graph", "GET", "/api/v1/agents/assistant/graph", "", nil, 200, `"conditional":true`, nil},
		{"graph as json", "GET", "/api/v1/agents/assistant/graph?format=json", "", nil, 200, `"nodes":[`, nil},
		{"graph as mermaid", "GET", "/api/v1/agents/assistant/graph?format=mermaid", "", nil, 200, "graph TD", nil},
		{"create memory", "POST", "/api/v1/memories", `{"user_id":"u","content":"c","metadata":{"k":1}}`, nil, 201, `"content":"c"`,
			[]apitest.Call{{Method: "Memories.Create", Scope: user, Args: []any{core.Memory{Content: "c", Metadata: json.RawMessage(`{"k":1}`)}}}}},
		{"memories", "GET", "/api/v1/memories?user_id=u&limit=7&cursor=abc", "", nil, 200, `"items":[{"id":"`,
			[]apitest.Call{{Method: "Memories.List", Scope: user, Args: []any{core.PageQuery{Limit: 7, Cursor: "abc"}}}}},
		{"memory", "GET", memoryPath + "?user_id=u", "", nil, 200, `"stale":false`,
			[]apitest.Call{{Method: "Memories.Get", Scope: user, Args: []any{apitest.MemoryID}}}},
		{"update memory", "PUT", memoryPath, `{"content":"d"}`, nil, 200, `"notice":"`,
			[]apitest.Call{{Method: "Memories.Update", Scope: local, Args: []any{core.Memory{ID: apitest.MemoryID, Content: "d"}}}}},
		{"delete memory", "DELETE", memoryPath + "?user_id=u", "", nil, 204, "",
			[]apitest.Call{{Method: "Memories.Delete", Scope: user, Args: []any{apitest.MemoryID}}}},
		{"search memories", "POST", "/api/v1/memories/search", `{"query":"q","user_id":"u","limit":3,"min_score":0.5}`, nil, 200, `"matches":"words"`,
			[]apitest.Call{{Method: "Memories.Search", Scope: user, Args: []any{core.MemorySearch{Query: "q", Limit: 3, MinScore: new(float32(0.5))}}}}},
		{"reindex", "POST", "/api/v1/memories/reindex", `{"all_owners":true,"cursor":"abc","limit":9}`, nil, 200, `"embedded":63`,
			[]apitest.Call{{Method: "Memories.Reindex", Scope: local, Args: []any{core.Reindex{AllOwners: true, Cursor: "abc", Limit: 9}}}}},
		{"live", "GET", "/healthz", "", nil, 200, `{"status":"ok"}`, nil},
		{"live by head", "HEAD", "/healthz", "", nil, 200, "", nil},
		{"ready", "GET", "/readyz", "", nil, 200, `{"status":"ready","checks":{}}`, nil},
		{"version", "GET", "/version", "", nil, 200, `"version":"1.2.3"`, nil},
		{"metrics", "GET", "/metrics", "", nil, 200, "\nbobbin_runs_active 1\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			backend := apitest.New()
			opts, _ := options(backend)
			w := do(api.New(opts), request(tt.method, tt.path, tt.body, tt.headers...))
			if w.Code != tt.status {
				t.Fatalf("got status %d, want %d; body %s", w.Code, tt.status, w.Body)
			}
			if !strings.Contains(w.Body.String(), tt.contains) {
				t.Errorf("got body %s, want %s in it", w.Body, tt.contains)
			}
			if diff := cmp.Diff(tt.calls, backend.Calls()); tt.calls != nil && diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLocations(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New())
	server := api.New(opts)
	tests := []struct {
		name     string
		r        *http.Request
		location string
		applied  string
	}{
		{"session", request("POST", "/api/v1/sessions", `{}`), sessionPath, ""},
		{"async", request("POST", sessionPath+"/messages", `{"content":"x"}`, "Prefer: respond-async"), runPath, "respond-async"},
		{"wait", request("POST", sessionPath+"/messages", `{"content":"x"}`), runPath, ""},
		{"stream", request("POST", sessionPath+"/messages", `{"content":"x"}`, "Accept: text/event-stream"), runPath, ""},
		{"cancel", request("POST", runPath+"/cancel", ``), runPath, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := do(server, tt.r).Header()
			if got := h.Get("Location"); got != tt.location {
				t.Errorf("got location %q, want %q", got, tt.location)
			}
			if got := h.Get("Preference-Applied"); got != tt.applied {
				t.Errorf("got preference applied %q, want %q", got, tt.applied)
			}
		})
	}
}

// TestRunWithoutAnswer: a failed run is an answer like any other, with 200: the request was
// taken and is in the log. The run's status and error say what became of it.
func TestRunWithoutAnswer(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	backend.Run.Status, backend.Run.AnswerID = core.RunFailed, ""
	backend.Run.Error = &core.RunError{Code: "model_auth", Message: "the provider refused the key"}
	opts, _ := options(backend)
	w := do(api.New(opts), request("POST", sessionPath+"/messages", `{"content":"x"}`))
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"message":{`) || !strings.Contains(w.Body.String(), "model_auth") {
		t.Errorf("got %d %s, want 200 with the failed run and no message", w.Code, w.Body)
	}
}

// TestPendingIsNotTwice: a message that enters the log between the two reads of
// one request is shown once.
func TestPendingIsNotTwice(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	backend.Queued.UserMessageID = apitest.UserID
	opts, _ := options(backend)
	w := do(api.New(opts), request("GET", sessionPath+"/messages", ""))
	if !strings.Contains(w.Body.String(), `"pending":[]`) {
		t.Errorf("got %s, want nothing pending that is in the log", w.Body)
	}
}

// TestEmptyLists: lists are never null.
func TestEmptyLists(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	backend.Messages = nil
	opts, _ := options(backend)
	w := do(api.New(opts), request("GET", sessionPath+"/messages", ""))
	if !strings.Contains(w.Body.String(), `{"items":[],"next_cursor":null,"pending":[`) {
		t.Errorf("got %s, want an empty list", w.Body)
	}
}
