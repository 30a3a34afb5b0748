package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/api"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
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

// API.md: a POST with an Idempotency-Key is done once.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	opts, _ := options(backend)
	server := api.New(opts)
	first := do(server, request("POST", "/api/v1/sessions", `{"title":"T"}`, withKey))
	again := do(server, request("POST", "/api/v1/sessions", `{"title":"T"}`, withKey))
	if first.Code != 201 || again.Code != 201 || first.Body.String() != again.Body.String() {
		t.Errorf("got %d %s and then %d %s, want the same", first.Code, first.Body, again.Code, again.Body)
	}
	for _, name := range []string{"Content-Type", "Location"} {
		if first.Header().Get(name) == "" || first.Header().Get(name) != again.Header().Get(name) {
			t.Errorf("%s: got %q and then %q, want the same", name, first.Header().Get(name), again.Header().Get(name))
		}
	}
	if first.Header().Get("Idempotency-Replayed") != "" || again.Header().Get("Idempotency-Replayed") != "true" {
		t.Error("want the header on the second answer only")
	}
	for path, body := range map[string]string{"/api/v1/sessions": `{"title":"U"}`, "/api/v1/sessions?x=1": `{"title":"T"}`, sessionPath + "/summarize": `{"title":"T"}`} {
		wantProblem(t, do(server, request("POST", path, body, withKey)), 422, "idempotency_key_reused")
	}
	compare.Equal(t, "sessions", 1, calls(backend, "CreateSession"))
	for range 2 { // an answer without a body is given again, too
		if w := do(server, request("POST", runPath+"/cancel", "", "Idempotency-Key: k-2")); w.Code != 202 || calls(backend, "Cancel") != 1 {
			t.Errorf("got %d after %d cancels, want 202 after one", w.Code, calls(backend, "Cancel"))
		}
	}
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
	if w.Code != 201 || w.Header().Get("Idempotency-Replayed") != "true" || calls(backend, "CreateSession") != 1 {
		t.Errorf("got %d after %d calls, want what the first one came to", w.Code, calls(backend, "CreateSession"))
	}
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
	if want := "[k-1 k-1 c k-1]"; fmt.Sprint(got) != want {
		t.Errorf("got client message ids %v, want %s", got, want)
	}
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
	if len(log.lines(t, "idempotent answer not stored")) != 1 || len(log.lines(t, "idempotency key not released")) != 2 {
		t.Errorf("got log %s, want both faults", log)
	}
}
