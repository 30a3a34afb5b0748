package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"bobbin/app/api"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

func TestAppendFields(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	w := do(server, request("POST", sessionPath()+"/messages",
		`{"run":false,"role":"assistant","content":"x","tool_calls":[{"id":"c","name":"n","arguments":"{ }"}],"author":"A","author_id":"a-1","source":"slack","client_message_id":"m","metadata":{"k":1},"created_at":"2026-01-02T03:04:05Z"}`))
	for _, want := range []string{`"role":"assistant"`, `"content":"x"`, `"tool_calls":[{"id":"c","name":"n","arguments":"{ }"}]`, `"author":"A"`, `"author_id":"a-1"`, `"source":"slack"`, `"client_message_id":"m"`, `"metadata":{"k":1}`, `"created_at":"2026-01-02T03:04:05Z"`} {
		compare.Contains(t, "w.Body", want, w.Body.String())
	}
	compare.Equal(t, "w.Code", 201, w.Code)
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
		p := wantProblem(t, do(server, request("POST", sessionPath()+"/messages", body)), 422, "invalid")
		if len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: got %+v, want a fault of %s", body, p.Errors, field)
		}
	}
	for body, field := range map[string]string{ // an edit in place changes nothing but the text
		`{"content":"x","run":false,"model":"m"}`:                                    "model",
		`{"content":"x","run":false,"author":"A"}`:                                   "author",
		`{"content":"x","run":false,"role":"tool"}`:                                  "role",
		`{"content":"x","run":false,"parts":[{"blob_id":"` + apitest.UserID + `"}]}`: "parts",
	} {
		p := wantProblem(t, do(server, request("PATCH", sessionPath()+"/messages/"+apitest.UserID, body)), 422, "invalid")
		if len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: got %+v, want a fault of %s", body, p.Errors, field)
		}
	}
	// The role user is what a message has that is answered.
	compare.Equal(t, "status", 202, do(server, request("POST", sessionPath()+"/messages", `{"content":"x","role":"user","run":true}`, "Prefer: respond-async")).Code)
}

func TestImportMediaTypes(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	const line = `{"role":"user","content":"x"}`
	for media, body := range map[string]string{"application/jsonl": line, "application/x-ndjson; charset=utf-8": line + "\n" + line, "application/json": "[" + line + "]"} {
		w := do(server, request("POST", sessionPath()+"/messages/import?source=cli", body, "Content-Type: "+media))
		if w.Code != 200 || !strings.Contains(w.Body.String(), fmt.Sprintf(`"imported":%d,`, strings.Count(body, "role"))) {
			t.Errorf("%s: got %d %s, want what was imported", media, w.Code, w.Body)
		}
	}
	compare.Equal(t, "messages of the source", 4, strings.Count(do(server, request("GET", sessionPath()+"/messages", "")).Body.String(), `"source":"cli"`))
	for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""} {
		wantProblem(t, do(server, request("POST", sessionPath()+"/messages/import", "x", "Content-Type: "+media)), 415, "unsupported_media_type")
	}
	wantProblem(t, do(server, request("POST", sessionPath()+"/messages/import?source=slack", "x")), 422, "invalid")
	wantProblem(t, do(server, request("POST", sessionPath()+"/messages/import?format=x", "x")), 422, "invalid")
	wantProblem(t, do(server, request("POST", "/api/v1/sessions/nonsense/messages/import", "x")), 404, "not_found")
}

// A history may be longer than other bodies, and has its own end.
func TestImportBodyLimit(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	opts.Limits.BodyBytes, opts.Limits.ImportBytes = 100, 1000
	server := api.New(opts)
	path := sessionPath() + "/messages/import"
	history := `[{"role":"user","content":"x"}` + strings.Repeat(" ", 969) + "]"
	w := do(server, request("POST", path, history))
	compare.Equal(t, "status for 1000 bytes", []any{200, 1000}, []any{w.Code, len(history)})
	for _, told := range []int64{1001, -1} { // beforehand
		r := request("POST", path, strings.Repeat("x", 1001))
		r.ContentLength = told
		p := wantProblem(t, do(server, r), 413, "too_large")
		compare.Contains(t, "what to do", "in parts, split before a user message, or raise limits.import_bytes", p.Detail)
	}
	wantProblem(t, do(server, request("POST", sessionPath()+"/messages", strings.Repeat("x", 101))), 413, "too_large")
	r := httptest.NewRequest("POST", path, io.MultiReader(strings.NewReader("x"), iotest.ErrReader(errors.New("connection reset"))))
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
	r.Header.Set("Content-Type", "application/jsonl")
	wantProblem(t, do(server, r), 400, "malformed_body")
}

func TestExportNames(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	id := apitest.SessionID[24:]
	for title, want := range map[string]string{
		"":                       "bobbin-" + id,
		"Über Köln & \"Bonn\"\n": "ber-k-ln-bonn-" + id,
		"../../etc/passwd":       "etc-passwd-" + id,
		"漢字":                     "bobbin-" + id,
		strings.Repeat("a", 500): strings.Repeat("a", 60) + "-" + id,
	} {
		w := do(server, request("PATCH", sessionPath(), string(must.Get(json.Marshal(map[string]string{"title": title}))(t))))
		compare.Equal(t, title, 200, w.Code)
		w = do(server, request("GET", sessionPath()+"/export", ""))
		compare.Equal(t, fmt.Sprintf("%q", title), `attachment; filename="`+want+`.json"`, w.Header().Get("Content-Disposition"))
	}
}
