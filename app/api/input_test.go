package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/api"
	"bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// TestBodies: what is wrong with a body is said by status, field and place.
func TestBodies(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	opts.Limits.BodyBytes = 4096
	server := api.New(opts)
	const messages = "/messages"
	tests := []struct {
		name, path, body, mediaType string
		status                      int
		code, detail                string
		errors                      []core.FieldError
	}{
		{"no media type", messages, `{}`, "", 415, "unsupported_media_type", "", nil},
		{"form", messages, `content=x`, "application/x-www-form-urlencoded", 415, "unsupported_media_type", "", nil},
		{"text, as a page could post it", messages, `{"content":"x"}`, "text/plain", 415, "unsupported_media_type", "", nil},
		{"broken media type", messages, `{}`, "application/json; =", 415, "unsupported_media_type", "", nil},
		{"too large", messages, `{"content":"` + strings.Repeat("x", 5000) + `"}`, "application/json", 413, "too_large", "the body is larger than 4096 bytes", nil},
		{"not JSON", messages, "{\n  \"content\": nope}", "application/json", 400, "malformed_body",
			"the body is not JSON: line 2, column 15: invalid character 'o' in literal null (expecting 'u')", nil},
		{"cut off", messages, `{"content":"x`, "application/json", 400, "malformed_body", "the body is not JSON: line 1, column 13: unexpected end of JSON input", nil},
		{"two values", messages, `{"content":"x"} {}`, "application/json", 400, "malformed_body", "the body is not JSON: line 1, column 17: invalid character '{' after top-level value", nil},
		{"list", messages, `[]`, "application/json", 400, "malformed_body", "the body must be a JSON object", nil},
		{"null", messages, `null`, "application/json", 400, "malformed_body", "the body must be a JSON object", nil},
		{"not UTF-8", messages, "{\"content\":\"\xff\"}", "application/json", 400, "malformed_body", "the body is not UTF-8", nil},
		{"unknown fields, all of them", messages, `{"contents":"x","xyzzy":"user"}`, "application/json; charset=utf-8", 422, "invalid", "", []core.FieldError{
			{Field: "contents", Detail: "is not a known field (did you mean content?); known are content, client_message_id, model, multitask, user_id, author, source, metadata, parts, webhook, options, after, run, role, tool_calls, tool_call_id, tool_name, created_at, author_id"},
			{Field: "xyzzy", Detail: "is not a known field; known are content, client_message_id, model, multitask, user_id, author, source, metadata, parts, webhook, options, after, run, role, tool_calls, tool_call_id, tool_name, created_at, author_id"}}},
		{"an unknown part of a form", messages, "--x\r\nContent-Disposition: form-data; name=\"y\"\r\n\r\nz\r\n--x--\r\n", "multipart/form-data; boundary=x", 422, "invalid", "y is not a known field; known are message, file", nil},
		{"other letters", "/summarize", `{"Focus":"x"}`, "application/json", 422, "invalid", "Focus is not a known field (did you mean focus?); known are focus", nil},
		{"wrong types, all of them", messages, `{"content":7,"metadata":[1],"multitask":{}}`, "application/json", 422, "invalid",
			"content must be a string, not number; metadata must be an object; multitask must be a string, not object", nil},
		{"wrong types of a session, all of them", "", `{"title":1,"pinned":"yes","tags":{},"archived":1.5,"metadata":"x"}`, "application/json", 422, "invalid",
			"archived must be true or false, not number; metadata must be an object; pinned must be true or false, not string; tags must be a list, not object; title must be a string, not number", nil},
		{"no whole number", messages, `{"content":"x","options":{"max_output_tokens":1.5}}`, "application/json", 422, "invalid", "options max_output_tokens must be a whole number, not number 1.5", nil},
		{"no number", messages, `{"content":"x","options":{"temperature":"hot"}}`, "application/json", 422, "invalid", "options temperature must be a number, not string", nil},
		{"no webhook", messages, `{"content":"x","webhook":{"url":"https://a.example","secrets":"whsec_hush"}}`, "application/json", 422, "invalid", `webhook has the unknown field "secrets"`, nil},
		{"as Slack", messages, `{"content":"x","source":"slack"}`, "application/json", 422, "invalid", "source must be api, web or cli", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			method := map[bool]string{true: "PATCH", false: "POST"}[tt.path == ""]
			r := request(method, sessionPath()+tt.path, tt.body, "Content-Type: "+tt.mediaType)
			p := wantProblem(t, do(server, r), tt.status, tt.code)
			compare.True(t, tt.detail == "" || p.Detail == tt.detail, "got detail %q, want %q", p.Detail, tt.detail)
			if diff := cmp.Diff(tt.errors, p.Errors); tt.errors != nil && diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBrokenBody: a body that breaks off is no message.
func TestBrokenBody(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	r := request("POST", sessionPath()+"/messages", "{}")
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"content"`), iotest.ErrReader(io.ErrUnexpectedEOF)))
	wantProblem(t, do(api.New(opts), r), 400, "malformed_body")
}

func TestQueries(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	tests := []struct{ path, field, detail string }{
		{"/api/v1/sessions?limit=0", "limit", "must be a whole number from 1 to 200"},
		{"/api/v1/sessions?limit=201", "limit", "must be a whole number from 1 to 200"},
		{"/api/v1/sessions?limit=-1", "limit", "must be a whole number from 1 to 200"},
		{"/api/v1/sessions?limit=1&limit=2", "limit", "is given more than once"},
		{"/api/v1/sessions?cursor=" + strings.Repeat("x", 600), "cursor", "is not a next_cursor of this list"},
		{"/api/v1/sessions?archived=yes", "archived", "must be true or false"},
		{"/api/v1/sessions?xyz=x", "xyz", "is not a known parameter; known are q, in, agent, user_id, status, pinned, tag, metadata, created_after, created_before, updated_after, updated_before, slack, archived, include, order, limit, cursor"},
		{"/api/v1/sessions?agent=%zz", "query", "is not a valid query string: it has an invalid escape or a semicolon"},
		{sessionPath() + "/messages?before=-1", "before", "must be a whole number from 0 to 9223372036854775807"},
		{sessionPath() + "/messages?after=" + missing, "after", "must be a whole number from 0 to 9223372036854775807"},
		{sessionPath() + "/events?after=x", "after", "must be a whole number from 0 to 9223372036854775807"},
		{sessionPath() + "?limit=1", "limit", "is not a known parameter; this request has none"},
		{sessionPath() + "/context?&&=&", "", "is not a known parameter; this request has none"},
		{"/version?a=1", "a", "is not a known parameter; this request has none"},
		{sessionPath() + "/events?from=1", "from", "is not a known parameter; known are after"},
		{runPath() + "/events?after=1.5", "after", "must be a whole number from 0 to 9223372036854775807"},
		{"/api/v1/agents/assistant/graph?format=svg", "format", "must be json or mermaid"},
		{"/api/v1/usage?from=0000-01-01", "from", "must be a day such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z"},
		{"/api/v1/usage?from=2026-02-01&to=2026-02-01", "to", "must be after from"},
	}
	for _, tt := range tests {
		t.Run(tt.path[:min(60, len(tt.path))], func(t *testing.T) {
			t.Parallel()
			p := wantProblem(t, do(server, request("GET", tt.path, "")), 422, "invalid")
			compare.Equal(t, "errors", []core.FieldError{{Field: tt.field, Detail: tt.detail}}, p.Errors)
		})
	}
	for _, path := range []string{sessionPath() + "/events", runPath() + "/events"} {
		for _, id := range []string{"x", "-1", "1.5", "9223372036854775808"} {
			p := wantProblem(t, do(server, request("GET", path, "", "Last-Event-ID: "+id)), 422, "invalid")
			compare.True(t, len(p.Errors) == 1 && p.Errors[0].Field == "Last-Event-ID", "got errors %v for id %s, want one of Last-Event-ID", p.Errors, id)
		}
	}
}

// Each parameter of each list is refused by its name when it can mean nothing.
func TestWrongFilters(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	ids := strings.NewReplacer("sessions/{id}", "sessions/"+apitest.SessionID, "runs/{id}", "runs/"+apitest.RunID, "{mid}", apitest.UserID, "{version}", "1", "{name}", "assistant")
	checked := 0
	for _, op := range ops.All() {
		for _, f := range ops.Fields(op.In) {
			kind := f.Type.Kind()
			if kind == reflect.Pointer {
				kind = f.Type.Elem().Kind()
			}
			wrong := map[reflect.Kind]string{reflect.Bool: "1", reflect.Int: "-1", reflect.Int64: "1.5", reflect.Struct: "2026-02-30", reflect.Slice: "[]"}[kind]
			if f.Name == "cursor" {
				wrong = strings.Repeat("x", 600)
			}
			if f.Enum() != nil {
				wrong = "nosuch"
			}
			if f.Place != ops.InQuery || wrong == "" || strings.HasPrefix(op.Path(), "/internal/") {
				continue
			}
			checked++
			p := wantProblem(t, do(server, request(op.Method(), ids.Replace(op.Path())+"?"+f.Name+"="+wrong, "")), 422, "invalid")
			if !slices.ContainsFunc(p.Errors, func(e core.FieldError) bool {
				return e.Field == f.Name && strings.HasPrefix(e.Detail, "must be ") != (f.Name == "cursor")
			}) {
				t.Errorf("%s: got %v for %s=%s, want what it must be", op.ID, p.Errors, f.Name, wrong)
			}
		}
	}
	compare.True(t, checked >= 50, "%d parameters were checked, want those of all lists", checked)
}

// Each filter of each list decides what is found.
func TestFilters(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	const late, early = "9998-01-01T00:00:00Z", "1998-01-01T00:00:00Z"
	for list, filters := range map[string][]string{
		"/api/v1/sessions?": {"agent=nobody", "user_id=nobody", "status=running", "pinned=true", "tag=nothing", "metadata=%7B%22team%22:%22b%22%7D", "q=zyzzyva", "in=title&q=zyzzyva",
			"created_after=" + late, "created_before=" + early, "updated_after=" + late, "updated_before=" + early},
		"/api/v1/search?q=hello&":      {"session_id=" + apitest.WaitingID, "user_id=nobody", "agent=nobody", "author=nobody", "role=tool", "after=" + late, "before=" + early},
		"/api/v1/runs?":                {"status=failed", "agent=nobody", "error=model_auth"},
		sessionPath() + "/messages?":   {"after=99", "before=1"},
		"/api/v1/blobs?":               {"session_id=" + apitest.WaitingID, "user_id=nobody"},
		"/api/v1/memories?":            {"user_id=nobody"},
		"/api/v1/usage?group_by=user&": {"from=9998-01-01&to=9998-01-02"},
	} {
		found := do(server, request("GET", list, "")).Body.String()
		compare.True(t, !strings.Contains(found, `"items":[]`), "%s finds nothing without a filter: %s", list, found)
		for _, filter := range filters {
			compare.Contains(t, list+filter, `"items":[]`, do(server, request("GET", list+filter, "")).Body.String())
		}
	}
}

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
		compare.True(t, len(p.Errors) == 1 && p.Errors[0].Field == field, "%s: got %+v, want a fault of %s", body, p.Errors, field)
	}
	for body, field := range map[string]string{ // an edit in place changes nothing but the text
		`{"content":"x","run":false,"model":"m"}`:                                    "model",
		`{"content":"x","run":false,"author":"A"}`:                                   "author",
		`{"content":"x","run":false,"role":"tool"}`:                                  "role",
		`{"content":"x","run":false,"parts":[{"blob_id":"` + apitest.UserID + `"}]}`: "parts",
	} {
		p := wantProblem(t, do(server, request("PATCH", sessionPath()+"/messages/"+apitest.UserID, body)), 422, "invalid")
		compare.True(t, len(p.Errors) == 1 && p.Errors[0].Field == field, "%s: got %+v, want a fault of %s", body, p.Errors, field)
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
		compare.Equal(t, media+": want what was imported", []any{200, true}, []any{w.Code, strings.Contains(w.Body.String(), fmt.Sprintf(`"imported":%d,`, strings.Count(body, "role")))})
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
