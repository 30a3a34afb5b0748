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

// What a request says arrives at the service. The answers, and what comes back from a service that
// gets nothing, are in tests/contract.
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
		{"send async, wait a little", "POST", sessionPath + "/messages", `{"content":"Hello"}`, []string{"Prefer: respond-async, wait=5"}, 200, `"message":{"id"`, nil},
		{"regenerate, option of a dialect", "POST", messagePath + "/regenerate", `{"options":{"response":{"background":true}}}`, nil, 422, `unknown field \"response\"`, nil},
		{"live by head", "HEAD", "/healthz", "", nil, 200, "", nil},
		{"list", "GET", "/api/v1/sessions?agent=a&user_id=u&archived=true&limit=7&cursor=abc", "", nil, 200, `"next_cursor":"next"`,
			[]apitest.Call{{Method: "Sessions.List", Scope: local, Args: []any{core.SessionQuery{
				PageQuery: core.PageQuery{Limit: 7, Cursor: "abc"}, Agent: "a", UserID: "u", Archived: true}}}}},
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
		{"select", "POST", messagePath + "/select", "", nil, 200, `"summary_version":1`,
			[]apitest.Call{{Method: "Select", Scope: local, Args: []any{apitest.SessionID, apitest.UserID}}}},
		{"pin", "PUT", messagePath + "/pin", `{"pinned":false}`, nil, 200, `"pinned":false`,
			[]apitest.Call{{Method: "Pin", Scope: local, Args: []any{apitest.SessionID, apitest.UserID, false}}}},
		{"delete a message", "DELETE", messagePath, "", nil, 204, "",
			[]apitest.Call{{Method: "DeleteMessage", Scope: local, Args: []any{apitest.SessionID, apitest.UserID}}}},
		{"fork", "POST", sessionPath + "/fork", "", nil, 201, `(fork)`,
			[]apitest.Call{{Method: "Fork", Scope: local, Args: []any{core.ForkSession{SessionID: apitest.SessionID}}}}},
		{"summarize without a body", "POST", sessionPath + "/summarize", "", nil, 200, `"version":1`,
			[]apitest.Call{{Method: "Summarize", Scope: local, Args: []any{apitest.SessionID, ""}}}},
		{"standing instructions", "GET", sessionPath + "/standing-instructions?limit=7&cursor=abc", "", nil, 200, `"items":[{"id":"`,
			[]apitest.Call{{Method: "StandingInstructions", Scope: local, Args: []any{apitest.SessionID, core.PageQuery{Limit: 7, Cursor: "abc"}}}}},
		{"add an instruction", "POST", sessionPath + "/standing-instructions", `{"text":"Be brief."}`, nil, 201, `"text":"Be brief."`,
			[]apitest.Call{{Method: "AddInstruction", Scope: local, Args: []any{apitest.SessionID, "Be brief."}}}},
		{"edit an instruction", "PATCH", instructionPath, `{"text":"Be brief."}`, nil, 200, `"edited_at":`,
			[]apitest.Call{{Method: "EditInstruction", Scope: local, Args: []any{apitest.SessionID, apitest.InstructionID, "Be brief."}}}},
		{"remove an instruction", "DELETE", instructionPath, "", nil, 204, "",
			[]apitest.Call{{Method: "RemoveInstruction", Scope: local, Args: []any{apitest.SessionID, apitest.InstructionID}}}},
		{"cancel", "POST", runPath + "/cancel", "", nil, 202, `"cancel_requested":true`,
			[]apitest.Call{{Method: "Cancel", Scope: local, Args: []any{apitest.RunID, false}}}},
		{"cancel and wait", "POST", runPath + "/cancel", `{"wait":true}`, nil, 200, `"status":"canceled"`,
			[]apitest.Call{{Method: "Cancel", Scope: local, Args: []any{apitest.RunID, true}}}},
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
