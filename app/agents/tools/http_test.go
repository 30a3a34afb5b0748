package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// environment is the variables of the tests.
func environment(name string) string {
	return map[string]string{"TOKEN": "s3cret-token-4711", "PATH": "/usr/bin:/bin", "HOME": "/tmp"}[name]
}

// httpTool returns the tool of a definition that may reach this machine.
func httpTool(t *testing.T, d core.ToolDefinition) *tools.Custom {
	t.Helper()
	d.Kind, d.Name = core.ToolHTTP, "x"
	if d.PrivateHosts == nil {
		d.PrivateHosts = []string{"127.0.0.1"}
	}
	return must.Get(tools.NewHTTP(d, tools.Web{Env: environment, MaxBytes: 10_000}))(t)
}

func callTool(t *testing.T, tool *tools.Custom, arguments string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	return tool.Call(ctx, tools.Call{ID: "call_1", Arguments: arguments, Session: core.Session{ID: "s"}})
}

// schemaOf is a schema with properties of any type.
func schemaOf(names ...string) json.RawMessage {
	var properties []string
	for _, name := range names {
		properties = append(properties, fmt.Sprintf("%q:{}", name))
	}
	return json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`)
}

// Arguments are escaped for the place where they stand, and what has no place is a parameter of the
// query, or part of the body.
func TestHTTPArguments(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.RequestURI, r.Header.Get("Authorization"), body)
	}))
	t.Cleanup(server.Close)
	for name, c := range map[string]struct {
		d               core.ToolDefinition
		arguments, want string
	}{
		"path": {core.ToolDefinition{URL: "/a/{id}/b-{n}"}, `{"id":"x/../y?z#é","n":3}`, "GET /a/x%2F..%2Fy%3Fz%23%C3%A9/b-3 "},
		"query": {core.ToolDefinition{URL: "/a?q={q}&fixed=1&gone={gone}", Query: map[string]string{"both": "{q}-{n}"}}, `{"q":"a&b=c {n}","n":3,"more":[1,"x"]}`,
			"GET /a?q=a%26b%3Dc+%7Bn%7D&fixed=1&both=a%26b%3Dc+%7Bn%7D-3&more=1&more=x "},
		"body":    {core.ToolDefinition{Method: "POST", URL: "/a/{id}"}, `{"id":"7","title":"t","big":12345678901234567890}`, `POST /a/7  {"big":12345678901234567890,"title":"t"}`},
		"no HTML": {core.ToolDefinition{Method: "POST", URL: "/a"}, `{"title":"<b>&"}`, `POST /a  {"title":"<b>&"}`},
		"undeclared": {core.ToolDefinition{URL: "/a?tenant=acme"}, `{"x":1,"tenant":"other"}`,
			"error: the arguments do not match the schema: at '/tenant': not allowed"},
		"undeclared in a body": {core.ToolDefinition{Method: "POST", URL: "/a"}, `{"x":1,"is_admin":true}`,
			"error: the arguments do not match the schema: at '/is_admin': not allowed"},
		"undeclared by an old draft": {core.ToolDefinition{Method: "POST", URL: "/a", Parameters: json.RawMessage(`{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"x": true}}`)}, `{"x":1,"is_admin":true}`,
			"error: the arguments do not match the schema: at '': additional properties 'is_admin' not allowed"},
		"fixed":     {core.ToolDefinition{URL: "/a?Id=acme"}, `{"id":"other"}`, `error: the tool sets "id" itself; leave the argument out`},
		"fixed too": {core.ToolDefinition{URL: "/a", Query: map[string]string{"id": "viewer"}}, `{"id":"admin"}`, `error: the tool sets "id" itself; leave the argument out`},
		"nothing":   {core.ToolDefinition{Method: "DELETE", URL: "/a"}, "", "DELETE /a "},
		"a header":  {core.ToolDefinition{URL: "/a", Headers: map[string]string{"Authorization": "Key ${TOKEN}"}}, "{}", "GET /a Key *** "},
		"a bearer":  {core.ToolDefinition{URL: "/a", Bearer: "TOKEN"}, "{}", "GET /a Bearer *** "},
		"truths":    {core.ToolDefinition{URL: "/a?x={x}"}, `{"x":true}`, "GET /a?x=true "},
		"null":      {core.ToolDefinition{URL: "/a?x={x}"}, `{"x":null}`, "GET /a "},
		"no such a": {core.ToolDefinition{URL: "/a/{id}"}, `{}`, `error: the argument "id" is missing or empty: it is part of the address`},
		"dots":      {core.ToolDefinition{URL: "/a/{id}"}, `{"id":".."}`, "error: an argument must not name the current or the parent folder"},
		"no JSON":   {core.ToolDefinition{URL: "/a"}, `{"id":`, "error: the arguments are not one JSON object"},
		"no object": {core.ToolDefinition{URL: "/a"}, `[1]`, "error: the arguments are not one JSON object"},
		"not set":   {core.ToolDefinition{URL: "/a", Bearer: "NONE"}, `{}`, "error: the tool is not set up: the environment variable NONE is not set"},
		"too long":  {core.ToolDefinition{URL: "/a?x={x}"}, `{"x":"` + strings.Repeat("a", 3000) + `"}`, "error: the address would have more than 2048 characters; use shorter arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.d.URL = server.URL + c.d.URL
			if c.d.Parameters == nil {
				c.d.Parameters = schemaOf("id", "n", "q", "x", "gone", "more", "title", "big")
			}
			got, err := callTool(t, httpTool(t, c.d), c.arguments)
			if err != nil {
				got = "error: " + err.Error()
			}
			compare.True(t, strings.TrimSpace(got) == strings.TrimSpace(c.want), "got  %s\nwant %s", got, c.want)
		})
	}
}

// Arguments are checked against the schema before anything is sent.
func TestHTTPSchema(t *testing.T) {
	t.Parallel()
	tool := httpTool(t, core.ToolDefinition{URL: "http://127.0.0.1:1/", Parameters: json.RawMessage(
		`{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"],"additionalProperties":false}`)})
	open := httpTool(t, core.ToolDefinition{URL: "http://127.0.0.1:1/", Parameters: json.RawMessage(`{"type":"object","allOf":[{"properties":{"n":{}}}],"additionalProperties":true}`)})
	if _, err := callTool(t, open, `{"n":1,"more":2}`); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("additional properties that the schema takes: got %v", err)
	}
	for _, arguments := range []string{`{}`, `{"n":"1"}`, `{"n":0}`, `{"n":1,"m":2}`} {
		if _, err := callTool(t, tool, arguments); err == nil || !strings.HasPrefix(err.Error(), "the arguments do not match the schema: ") {
			t.Errorf("%s: got %v", arguments, err)
		}
	}
}

// What an answer comes to: a part of it by a JSON Pointer, a placeholder for what is not text, an
// error with the status, and never a secret that was sent.
func TestHTTPAnswers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Content-Type", q.Get("type"))
		status := http.StatusOK
		_, _ = fmt.Sscan(q.Get("status"), &status)
		w.WriteHeader(status)
		fmt.Fprint(w, q.Get("body"))
	}))
	t.Cleanup(server.Close)
	const items = `{"items":[{"name":"one"},{"a/b":{"n":12345678901234567890}}]}`
	for name, c := range map[string]struct{ kind, status, body, result, want string }{
		"whole":          {"application/json", "200", items, "", items},
		"a text":         {"application/json", "200", items, "/items/0/name", "one"},
		"an object":      {"application/json", "200", items, "/items/1/a~1b", `{"n":12345678901234567890}`},
		"numbers":        {"application/json", "200", "\ufeff" + `{"a": {"n": 10.0, "t": "<b>"}}`, "/a", `{"n":10.0,"t":"<b>"}`},
		"null":           {"application/json", "200", `{"a":null}`, "/a", "null"},
		"nothing":        {"application/json", "200", items, "/items/2", "error: the answer has nothing at /items/2; it is: " + items},
		"not JSON":       {"text/plain", "200", "hello", "/a", "error: the answer is not JSON, and the tool reads /a of it"},
		"a charset":      {"application/json; charset=windows-1251", "200", "{\"a\":\"\xcf\xf0\xe8\xe2\xe5\xf2\"}", "/a", "Привет"},
		"Japanese":       {"text/plain; charset=shift_jis", "500", "\x93\xfa\x96{", "", "error: the server answered with status 500 Internal Server Error: 日本"},
		"UTF-16":         {"", "200", "\xff\xfeh\x00i\x00", "", "hi"},
		"a secret in it": {"application/json", "200", "\xfe\xff\x00" + strings.Join(strings.Split(`{"a":"s3cret-token-4711"}`, ""), "\x00"), "/a", "***"},
		"an image":       {"image/png", "200", "\x89PNG12345", "", "[image/png, 9 bytes]"},
		"no content":     {"", "200", "", "", "[status 200, no content]"},
		"a fault":        {"application/json", "422", `{"detail":"bad"}`, "/x", `error: the server answered with status 422 Unprocessable Entity: {"detail":"bad"}`},
		"a secret":       {"text/plain", "200", "you sent s3cret-token-4711", "", "you sent ***"},
		"a secret too":   {"text/plain", "500", "you sent s3cret-token-4711", "", "error: the server answered with status 500 Internal Server Error: you sent ***"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := url.Values{"type": {c.kind}, "status": {c.status}, "body": {c.body}}
			got, err := callTool(t, httpTool(t, core.ToolDefinition{URL: server.URL + "/?" + q.Encode(), Bearer: "TOKEN", Result: c.result}), "")
			if err != nil {
				got = "error: " + err.Error()
			}
			compare.Equal(t, "request", c.want, got)
		})
	}
}

// A server that floods, redirects, or is on this machine's networks gets and gives nothing more. A
// request that may take effect is sent once.
func TestHTTPHostileServers(t *testing.T) {
	t.Parallel()
	var inside, posts atomic.Int64
	var keys [3]atomic.Value
	secret := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inside.Add(1)
		fmt.Fprint(w, r.Header)
	}))
	t.Cleanup(secret.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/flood":
			for range 100 {
				_, _ = w.Write(make([]byte, 1000))
			}
		case "/inside":
			http.Redirect(w, r, secret.URL, http.StatusFound)
		case "/again":
			posts.Add(1)
			http.Redirect(w, r, "/ok", http.StatusTemporaryRedirect)
		case "/here":
			http.Redirect(w, r, "/ok", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/cut":
			if n := posts.Add(1); n <= 3 {
				keys[n-1].Store(r.Header.Get("Idempotency-Key"))
			}
			hijacked, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = hijacked.Close()
			}
		default:
			fmt.Fprint(w, "ok")
		}
	}))
	t.Cleanup(server.Close)
	try := func(d core.ToolDefinition) string {
		t.Helper()
		got, err := callTool(t, httpTool(t, d), "")
		if err != nil {
			return err.Error()
		}
		return got
	}
	for path, want := range map[string]string{
		"/flood": "the answer has more than 10 KB; ask for less", "/inside": "the server redirects to another host, which is not followed",
		"/here": "ok", "/loop": "the server redirects more than 5 times",
	} {
		compare.Equal(t, path, want, try(core.ToolDefinition{URL: server.URL + path, Bearer: "TOKEN"}))
	}
	got := try(core.ToolDefinition{Method: "POST", URL: server.URL + "/again"})
	compare.Equal(t, "a redirected POST: refused, requests", []any{true, int64(1)}, []any{strings.Contains(got, "status 307"), posts.Load()})
	posts.Store(0)
	idempotent := true
	for _, d := range []core.ToolDefinition{{Method: "POST"}, {Method: "POST", Idempotent: &idempotent}} {
		d.URL = server.URL + "/cut"
		compare.Contains(t, "a cut POST", "cannot be reached", try(d))
	}
	_, _ = httpTool(t, core.ToolDefinition{Method: "POST", URL: server.URL + "/cut"}).Call(t.Context(), tools.Call{ID: "call_1", Session: core.Session{ID: "other"}})
	if posts.Load() != 3 || keys[0].Load() != keys[1].Load() || keys[0].Load() == keys[2].Load() || len(fmt.Sprint(keys[0].Load())) != 32 {
		t.Errorf("%d requests for 3 calls, with the keys %v and %v of one call, %v of another session's", posts.Load(), keys[0].Load(), keys[1].Load(), keys[2].Load())
	}
	if tools.CheckRedirect(httptest.NewRequest("GET", "http://a.example/", nil), []*http.Request{httptest.NewRequest("GET", "https://a.example/", nil)}) == nil {
		t.Error("a redirect that gives up encryption is followed")
	}
	public := core.ToolDefinition{URL: secret.URL, PrivateHosts: []string{"other.example"}}
	compare.Contains(t, "this machine", "the address of 127.0.0.1 is not public; if it may be reached, the tool's file must name it in private_hosts", try(public))
	metadata := core.ToolDefinition{URL: "http://169.254.169.254/latest/", PrivateHosts: []string{"169.254.169.254"}}
	compare.Contains(t, "the metadata of a cloud", "is not public", try(metadata))
	compare.Equal(t, "requests arrived inside", 0, inside.Load())
}

// What a tool does by default chooses whether a person is asked, and whether a crash may repeat it.
func TestHTTPDefaults(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]core.ApprovalMode{"": core.ApprovalNever, "HEAD": core.ApprovalNever, "POST": core.ApprovalAlways, "DELETE": core.ApprovalAlways} {
		tool := httpTool(t, core.ToolDefinition{Method: method, URL: "https://a.example"})
		compare.Equal(t, method+": approval, idempotent", []any{want, want == core.ApprovalNever}, []any{tool.Approval, tool.Repeatable})
	}
}

// command returns the tool of a script in a folder of its own.
func command(t *testing.T, script string, d core.ToolDefinition) *tools.Custom {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "tool.sh"), []byte("#!/bin/sh\n"+script), 0o755))
	d.Name, d.Kind, d.Command, d.File = "x", core.ToolCommand, "./tool.sh", filepath.Join(dir, "x.yaml")
	return must.Get(tools.NewCommand(d, tools.Command{Env: environment, MaxBytes: 10_000}))(t)
}

// A command gets the arguments as JSON on its standard input, and nothing of our environment that the
// definition does not list.
func TestCommand(t *testing.T) {
	t.Setenv("BOBBIN_SECRET", "do not tell")
	tool := command(t, `cat; echo "$1|$2"; env | sort; pwd; test "$TOKEN" = s3cret-token-4711 || exit 1`, core.ToolDefinition{
		Args: []string{"a b", "$HOME;*"}, Env: []string{"TOKEN", "MODE=x y"}, Parameters: schemaOf("q"),
	})
	got := must.Get(callTool(t, tool, `{"q":"it's; $(x)"}`))(t)
	lines := strings.Split(strings.TrimSpace(got), "\n")
	want := []string{`{"q":"it's; $(x)"}`, "a b|$HOME;*", "MODE=x y", "PWD=", "TOKEN=***"} // it had the secret
	if len(lines) < 5 || lines[0] != want[0] || lines[1] != want[1] || strings.Contains(got, "BOBBIN_SECRET") || strings.Contains(got, "HOME=") {
		t.Fatalf("got\n%s", got)
	}
	for _, line := range want {
		compare.Contains(t, "line of the result", line, got)
	}
	compare.Equal(t, "approval, idempotent", []any{core.ApprovalAlways, false}, []any{tool.Approval, tool.Repeatable})
}

// What goes wrong with a command is an error in bounds.
func TestCommandFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"an exit code": {"echo partly; echo no such city >&2; exit 3", "the program failed: exit status 3\nno such city\npartly"},
		"a signal":     {"kill -9 $$", "the program failed: signal: killed"},
		"a flood":      {"while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done", "the program wrote more than 10 KB and was stopped; ask for less"},
		"long errors":  {"i=0; while [ $i -lt 3000 ]; do echo 0123456789 >&2; i=$((i+1)); done; exit 1", "the program failed: exit status 1\n0123456789"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := callTool(t, command(t, c.script, core.ToolDefinition{}), "")
			compare.True(t, err != nil && strings.HasPrefix(err.Error(), c.want) && len(err.Error()) <= 10_000, "got %.300v, want %s", err, c.want)
		})
	}
	tool := command(t, "", core.ToolDefinition{Env: []string{"NONE"}})
	if _, err := callTool(t, tool, ""); err == nil || err.Error() != "the tool is not set up: the environment variable NONE is not set" {
		t.Errorf("got %v", err)
	}
	d := core.ToolDefinition{Name: "x", Command: "no-such-program"}
	gone := must.Get(tools.NewCommand(d, tools.Command{Env: environment, MaxBytes: 10}))(t)
	if _, err := callTool(t, gone, ""); err == nil || err.Error() != "the program no-such-program is not installed, or cannot be executed" {
		t.Errorf("got %v", err)
	}
}

// A command that is canceled ends with everything that it has started.
func TestCommandIsCanceled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	tool := command(t, fmt.Sprintf("sleep 1000 & echo $! > %s.tmp; mv %s.tmp %s; wait", pid, pid, pid), core.ToolDefinition{Env: []string{"PATH"}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := tool.Call(ctx, tools.Call{})
		done <- err
	}()
	child := ""
	for child == "" {
		if text, err := os.ReadFile(pid); err == nil {
			child = strings.TrimSpace(string(text))
		}
	}
	cancel()
	compare.Error(t, "<-done", context.Canceled, <-done)
	for deadline := time.Now().Add(2 * time.Minute); ; {
		state, err := os.ReadFile("/proc/" + child + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			break
		}
		must.True(t, !time.Now().After(deadline), "the child %s is still there: %s", child, state)
	}
}
