package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"bobbin/app/api"
	"bobbin/app/api/openai"
	"bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

const withKey = "Idempotency-Key: k-1"

// calls counts the calls of a method.
func calls(b *apitest.Backend, method string) int {
	n := 0
	for _, c := range b.Calls() {
		if c.Method == method {
			n++
		}
	}
	return n
}

// repeatable are the bodies of operations that need more than one of the values of TestRepeatedKeys.
var repeatable = map[string]string{
	"editSummary":        `{"content":"x","version":1}`,
	"importMessages":     `{"messages":[{"role":"user","content":"x"}]}`,
	"embed":              `{"model":"hashing-384-v1","input":["looms"]}`,
	"createConversation": `{}`,
	"updateConversation": `{"metadata":{"a":"b"}}`,
	"addItems":           `{"items":[{"role":"user","content":"x"}]}`,
	"createDeletion":     `{"user_id":"u-1"}`,
	"decideApproval":     `{"decision":"approve"}`,
	"fixSlackPost":       `{"action":"send"}`,
	"uploadFile":         "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nhello\r\n--x--\r\n",
}

// countingEmbedder counts how often it is asked.
type countingEmbedder struct {
	llm.HashEmbedder
	asked *atomic.Int32
}

func (e countingEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e.asked.Add(1)
	return e.HashEmbedder.Embed(ctx, texts)
}

// API.md: what a second request with the same Idempotency-Key does, on every route that is no GET. Chat completions and
// responses, whose key is that of their run, are in tests/conformance.
func TestRepeatedKeys(t *testing.T) {
	t.Parallel()
	values := map[string]any{"content": "x", "text": "x", "query": "x", "team": "T1", "channel": "C1", "thread": "1700000000.000100", "pinned": true, "rating": "up", "metadata": map[string]any{"a": 1}, "url": "https://hooks.example/1"}
	ids := strings.NewReplacer("{mid}", string(apitest.UserID), "{iid}", string(apitest.InstructionID), "{did}", string(apitest.DeliveryID), "{approval}", string(apitest.Approval().ID),
		"{version}", "1", "{item}", string(apitest.AnswerID), "/sessions/{id}", "/sessions/"+string(apitest.SessionID), "/runs/{id}", "/runs/"+string(apitest.RunID), "/memories/{id}", "/memories/"+string(apitest.MemoryID), "/blobs/{id}", "/blobs/"+string(apitest.BlobID))
	hexed := func(id string) string { return strings.ReplaceAll(id, "-", "") }
	for _, op := range append(slices.Clone(ops.All()),
		ops.Operation{ID: "embed", Route: "POST /v1/embeddings", Scope: core.CanRead},
		ops.Operation{ID: "cancelResponse", Route: "POST /v1/responses/resp_" + hexed(string(apitest.RunID)) + "/cancel", Scope: core.CanWrite},
		ops.Operation{ID: "createConversation", Route: "POST /v1/conversations", Scope: core.CanWrite},
		ops.Operation{ID: "updateConversation", Route: "POST /v1/conversations/conv_" + string(apitest.SessionID), Scope: core.CanWrite},
		ops.Operation{ID: "addItems", Route: "POST /v1/conversations/conv_" + string(apitest.SessionID) + "/items", Scope: core.CanWrite},
	) {
		if op.Scope == 0 || op.Method() == http.MethodGet {
			continue
		}
		t.Run(op.ID, func(t *testing.T) {
			t.Parallel()
			body, headers := repeatable[op.ID], []string{withKey, "Prefer: respond-async"}
			if fields := map[string]any{}; body == "" && op.In != nil && op.Method() != http.MethodDelete {
				for _, f := range ops.Fields(op.In) {
					if value, ok := values[f.Name]; ok && f.Place == ops.InBody {
						fields[f.Name] = value
					}
				}
				body = string(must.Get(json.Marshal(fields))(t))
			}
			if op.ID == "uploadFile" {
				headers = append(headers, asForm)
			}
			backend := apitest.New()
			opts, _ := options(backend)
			embedder := countingEmbedder{asked: new(atomic.Int32)}
			executions := func() int { return len(backend.Calls()) + int(embedder.asked.Load()) }
			opts.OpenAI = openai.Options{Embedder: embedder, CountTokens: func(text string) int { return len(text) }}
			server := api.New(opts)
			first := do(server, request(op.Method(), ids.Replace(op.Path()), body, headers...))
			before := executions()
			again := do(server, request(op.Method(), ids.Replace(op.Path()), body, headers...))
			executed, replayed := executions() > before, again.Header().Get("Idempotency-Replayed") == "true"
			asks := slices.Contains([]string{"sendMessage", "editMessage", "regenerateMessage"}, op.ID)
			switch isPost := op.Method() == http.MethodPost || op.Method() == http.MethodPatch; {
			case op.Scope == core.CanDelete:
				wantProblem(t, again, 422, "invalid")
				return
			case !isPost, op.Scope == core.CanRead, asks: // the key of a message is its client_message_id
				if !executed || replayed {
					t.Errorf("got executed %t, replayed %t, want it executed again", executed, replayed)
				}
			case executed || !replayed:
				t.Errorf("got executed %t, replayed %t, want the first answer", executed, replayed)
			}
			if first.Code > 299 || before == 0 || first.Code != again.Code || first.Body.String() != again.Body.String() || first.Header().Get("Location") != again.Header().Get("Location") {
				t.Errorf("got %d %s after %d calls, and then %d %s, want the same", first.Code, first.Body, before, again.Code, again.Body)
			}
			for _, c := range backend.Calls() {
				switch in := append(c.Args, nil)[0].(type) {
				case core.SendMessage:
					compare.Equal(t, "client_message_id", "k-1", in.ClientMessageID)
				case core.Regenerate:
					compare.Equal(t, "client_message_id", "k-1", in.ClientMessageID)
				}
			}
		})
	}
}

// A key is for one request.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	opts, _ := options(backend)
	server := api.New(opts)
	do(server, request("POST", "/api/v1/sessions", `{"title":"T"}`, withKey))
	for path, body := range map[string]string{"/api/v1/sessions": `{"title":"U"}`, "/api/v1/sessions?x=1": `{"title":"T"}`, sessionPath + "/summarize": `{"title":"T"}`, sessionPath + "/messages": `{"content":"x"}`} {
		wantProblem(t, do(server, request("POST", path, body, withKey)), 422, "idempotency_key_reused")
	}
	compare.Equal(t, "sessions", 1, calls(backend, "CreateSession"))
	// Reads need no key, and are never answered from the store.
	do(server, request("GET", sessionPath, "", withKey))
	if w := do(server, request("GET", sessionPath, "", withKey)); w.Code != 200 || w.Header().Get("Idempotency-Replayed") != "" {
		t.Errorf("got %d, want the session as it is", w.Code)
	}
}

// Nothing was done, so the same key may be used again.
func TestIdempotencyKeyAfterAnError(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]apitest.Hook{
		"refused":  func(context.Context) error { return core.Errorf(core.ErrConflict, "busy") },
		"internal": func(context.Context) error { return errors.New("disk on fire") },
		"panic":    func(context.Context) error { panic("oh") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend := apitest.New()
			failing := true
			backend.Hooks["CreateSession"] = func(ctx context.Context) error {
				if failing {
					return hook(ctx)
				}
				return nil
			}
			opts, _ := options(backend)
			server := api.New(opts)
			if w := do(server, request("POST", "/api/v1/sessions", `{}`, withKey)); w.Code < 400 || w.Body.Len() == 0 {
				t.Fatalf("got %d %s, want the problem", w.Code, w.Body)
			}
			failing = false
			if w := do(server, request("POST", "/api/v1/sessions", `{"title":"another"}`, withKey)); w.Code != 201 {
				t.Errorf("got %d %s, want it done now", w.Code, w.Body)
			}
		})
	}
}

// Who goes away and comes back finds the work done.
func TestIdempotentWorkOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	ctx, leave := context.WithCancel(t.Context())
	backend.Hooks["CreateSession"] = func(ctx context.Context) error { leave(); return ctx.Err() }
	opts, _ := options(backend)
	server := api.New(opts)
	do(server, request("POST", "/api/v1/sessions", `{}`, withKey).WithContext(ctx))
	w := do(server, request("POST", "/api/v1/sessions", `{}`, withKey))
	compare.Equal(t, "after calls: want what the first one came to", []any{201, "true", 1}, []any{w.Code, w.Header().Get("Idempotency-Replayed"), calls(backend, "CreateSession")})
}

// An answer that is too long is not kept, and the work not done again.
func TestIdempotentAnswerTooLong(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	backend.Summary.Content = strings.Repeat("x", 300<<10)
	opts, _ := options(backend)
	server := api.New(opts)
	if w := do(server, request("POST", sessionPath+"/summarize", "", withKey)); w.Code != 200 || w.Body.Len() < 300<<10 {
		t.Fatalf("got %d with %d bytes, want the whole answer", w.Code, w.Body.Len())
	}
	w := do(server, request("POST", sessionPath+"/summarize", "", withKey))
	wantProblem(t, w, 409, "answer_not_kept")
	compare.Equal(t, "summaries", 1, calls(backend, "Summarize"))
}

// For what an agent answers, the key is the client_message_id.
func TestIdempotencyKeyOfMessages(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	opts, _ := options(backend)
	server := api.New(opts)
	for _, body := range []string{`{"content":"x"}`, `{"content":"x"}`, `{"content":"x","client_message_id":"c"}`, `{"content":"x","run":false}`} {
		do(server, request("POST", sessionPath+"/messages", body, withKey, "Prefer: respond-async"))
	}
	var got []string
	for _, c := range backend.Calls() {
		switch c.Method {
		case "Send":
			got = append(got, c.Args[0].(core.SendMessage).ClientMessageID)
		case "Append":
			got = append(got, c.Args[1].(core.Message).ClientMessageID)
		}
	}
	compare.Equal(t, "client message ids", "[k-1 k-1 c k-1]", fmt.Sprint(got))
}

func TestIdempotencyKeyIsChecked(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New())
	server := api.New(opts)
	for _, key := range []string{"", strings.Repeat("k", 201), "ü", "a\tb"} {
		r := request("POST", "/api/v1/sessions", `{}`)
		r.Header["Idempotency-Key"] = []string{key}
		wantProblem(t, do(server, r), 422, "invalid")
		r = request("POST", sessionPath+"/messages", `{"content":"x"}`)
		r.Header["Idempotency-Key"] = []string{key}
		wantProblem(t, do(server, r), 422, "invalid")
	}
	r := request("POST", "/api/v1/sessions", `{}`)
	r.Header["Idempotency-Key"] = []string{"a", "b"}
	wantProblem(t, do(server, r), 422, "invalid")
}

// brokenKeys is a store that does not answer.
type brokenKeys struct{ *apitest.Keys }

func (brokenKeys) Finish(context.Context, core.KeyedRequest, core.KeyedAnswer) error {
	return errors.New("disk on fire")
}

func (brokenKeys) Release(context.Context, core.KeyedRequest) error {
	return errors.New("disk on fire")
}

// What was done is answered, also when it cannot be kept.
func TestIdempotentAnswerThatCannotBeKept(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	opts, log := options(backend)
	opts.Keys = brokenKeys{&apitest.Keys{}}
	server := api.New(opts)
	compare.Equal(t, "w.Code", 201, do(server, request("POST", "/api/v1/sessions", `{}`, withKey)).Code)
	wantProblem(t, do(server, request("POST", "/api/v1/sessions", `{}`, withKey)), 409, "request_in_progress")
	wantProblem(t, do(server, request("POST", "/api/v1/sessions", `{"x":1}`, "Idempotency-Key: k-3")), 422, "invalid")
	compare.Equal(t, "log: want both faults", []int{1, 2}, []int{len(log.lines(t, "idempotent answer not stored")), len(log.lines(t, "idempotency key not released"))})
}
