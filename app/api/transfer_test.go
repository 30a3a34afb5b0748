package api_test

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"bobbin/app/api"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
)

func TestAppendFields(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	opts, _ := options(backend)
	server := api.New(opts)
	w := do(server, request("POST", sessionPath+"/messages",
		`{"run":false,"role":"assistant","content":"x","tool_calls":[{"id":"c","name":"n","arguments":"{ }"}],"author":"A","author_id":"a-1","source":"slack","client_message_id":"m","metadata":{"k":1},"created_at":"2026-01-02T03:04:05Z"}`))
	if w.Code != 201 {
		t.Fatalf("got %d %s, want 201", w.Code, w.Body)
	}
	want := []any{apitest.SessionID, core.Message{Role: core.RoleAssistant, Content: "x", ToolCalls: []core.ToolCall{{ID: "c", Name: "n", Arguments: "{ }"}},
		Author: "A", AuthorID: "a-1", Source: core.SourceSlack, ClientMessageID: "m", Metadata: []byte(`{"k":1}`), CreatedAt: apitest.Time().Truncate(1e9)}}
	compare.Equal(t, "call", want, backend.Calls()[0].Args)
	for body, field := range map[string]string{
		`{"content":"x","role":"assistant"}`:                   "role",
		`{"content":"x","tool_call_id":"c"}`:                   "tool_call_id",
		`{"content":"x","tool_name":"c"}`:                      "tool_name",
		`{"content":"x","tool_calls":[{"id":"c"}]}`:            "tool_calls",
		`{"content":"x","created_at":"2026-01-02T03:04:05Z"}`:  "created_at",
		`{"content":"x","author_id":"u"}`:                      "author_id",
		`{"content":"x","run":false,"model":"m"}`:              "model",
		`{"content":"x","run":false,"multitask":"enqueue"}`:    "multitask",
		`{"content":"x","run":false,"user_id":"u"}`:            "user_id",
		`{"content":"x","run":false,"source":"fax"}`:           "source",
		`{"content":"x","run":false,"created_at":"yesterday"}`: "created_at",
		`{"content":"x","run":"false"}`:                        "run",
	} {
		p := wantProblem(t, do(server, request("POST", sessionPath+"/messages", body)), 422, "invalid")
		if len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: got %+v, want a fault of %s", body, p.Errors, field)
		}
	}
	for body, field := range map[string]string{ // an edit in place changes nothing but the text
		`{"content":"x","run":false,"model":"m"}`:                                            "model",
		`{"content":"x","run":false,"author":"A"}`:                                           "author",
		`{"content":"x","run":false,"role":"tool"}`:                                          "role",
		`{"content":"x","run":false,"parts":[{"blob_id":"` + string(apitest.UserID) + `"}]}`: "parts",
	} {
		p := wantProblem(t, do(server, request("PATCH", sessionPath+"/messages/"+string(apitest.UserID), body)), 422, "invalid")
		if len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: got %+v, want a fault of %s", body, p.Errors, field)
		}
	}
	// The role user is what a message has that is answered.
	if w := do(server, request("POST", sessionPath+"/messages", `{"content":"x","role":"user","run":true}`, "Prefer: respond-async")); w.Code != 202 {
		t.Errorf("got %d %s, want 202", w.Code, w.Body)
	}
}

func TestImportMediaTypes(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	opts, _ := options(backend)
	server := api.New(opts)
	for media, want := range map[string]core.ImportFormat{
		"application/jsonl": core.ImportLines, "application/x-ndjson; charset=utf-8": core.ImportLines, "application/json": core.ImportJSON,
	} {
		if w := do(server, request("POST", sessionPath+"/messages/import?source=cli", "x", "Content-Type: "+media)); w.Code != 200 {
			t.Errorf("%s: got %d %s, want 200", media, w.Code, w.Body)
		}
		all := backend.Calls()
		compare.Equal(t, media, []any{apitest.SessionID, want, core.SourceCLI, "x"}, all[len(all)-1].Args)
	}
	for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""} {
		wantProblem(t, do(server, request("POST", sessionPath+"/messages/import", "x", "Content-Type: "+media)), 415, "unsupported_media_type")
	}
	wantProblem(t, do(server, request("POST", sessionPath+"/messages/import?source=slack", "x")), 422, "invalid")
	wantProblem(t, do(server, request("POST", sessionPath+"/messages/import?format=x", "x")), 422, "invalid")
	wantProblem(t, do(server, request("POST", "/api/v1/sessions/nonsense/messages/import", "x")), 404, "not_found")
}

// A history may be longer than other bodies, and has its own end.
func TestImportBodyLimit(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New())
	opts.Limits.BodyBytes, opts.Limits.ImportBytes = 100, 1000
	server := api.New(opts)
	path := sessionPath + "/messages/import"
	if w := do(server, request("POST", path, strings.Repeat("x", 1000))); w.Code != 200 {
		t.Errorf("got %d %s for 1000 bytes, want 200", w.Code, w.Body)
	}
	for _, told := range []int64{1001, -1} { // beforehand
		r := request("POST", path, strings.Repeat("x", 1001))
		r.ContentLength = told
		p := wantProblem(t, do(server, r), 413, "too_large")
		compare.Contains(t, "what to do", "in parts, split before a user message, or raise limits.import_bytes", p.Detail)
	}
	wantProblem(t, do(server, request("POST", sessionPath+"/messages", strings.Repeat("x", 101))), 413, "too_large")
	r := httptest.NewRequest("POST", path, io.MultiReader(strings.NewReader("x"), iotest.ErrReader(errors.New("connection reset"))))
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
	r.Header.Set("Content-Type", "application/jsonl")
	wantProblem(t, do(server, r), 400, "malformed_body")
}

func TestExportNames(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{
		"":                       `attachment; filename="bobbin-000000000001.json"`,
		"Über Köln & \"Bonn\"\n": `attachment; filename="ber-k-ln-bonn-000000000001.json"`,
		"../../etc/passwd":       `attachment; filename="etc-passwd-000000000001.json"`,
		"漢字":                     `attachment; filename="bobbin-000000000001.json"`,
		strings.Repeat("a", 500): `attachment; filename="` + strings.Repeat("a", 60) + `-000000000001.json"`,
	} {
		backend := apitest.New()
		backend.Session.Title = title
		opts, _ := options(backend)
		w := do(api.New(opts), request("GET", sessionPath+"/export", ""))
		compare.Equal(t, fmt.Sprintf("%q", title), want, w.Header().Get("Content-Disposition"))
	}
}
