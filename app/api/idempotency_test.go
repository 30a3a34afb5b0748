package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/api"
	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

const withKey = "Idempotency-Key: k-1"

// count returns how many sessions and runs there are.
func count(t *testing.T, b *apitest.World) (n int) {
	t.Helper()
	for _, table := range []string{"sessions", "runs"} {
		var rows int
		must.Do(t, b.Database.Gorm.WithContext(t.Context()).Raw("SELECT count(*) FROM "+table).Row().Scan(&rows))
		n += rows
	}
	return n
}

// A key is for one request.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	backend := apitest.New(t)
	opts, _ := options(backend)
	server := api.New(opts)
	before := count(t, backend)
	first := do(server, request("POST", "/api/v1/sessions", `{"title":"T"}`, withKey))
	again := do(server, request("POST", "/api/v1/sessions", `{"title":"T"}`, withKey))
	compare.Equal(t, "the answer to a repetition", first.Body.String()+"true", again.Body.String()+again.Header().Get("Idempotency-Replayed"))
	for path, body := range map[string]string{"/api/v1/sessions": `{"title":"U"}`, "/api/v1/sessions?x=1": `{"title":"T"}`, sessionPath() + "/summarize": `{"title":"T"}`, sessionPath() + "/messages": `{"content":"x"}`} {
		wantProblem(t, do(server, request("POST", path, body, withKey)), 422, "idempotency_key_reused")
	}
	compare.Equal(t, "sessions", before+1, count(t, backend))
	// Reads need no key, and are never answered from the store.
	do(server, request("GET", sessionPath(), "", withKey))
	w := do(server, request("GET", sessionPath(), "", withKey))
	compare.Equal(t, "the session as it is", []any{200, ""}, []any{w.Code, w.Header().Get("Idempotency-Replayed")})
}

// A second request of OpenAI's clients with the same key gets the first answer.
func TestRepeatedKeysOfConversations(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	run := strings.ReplaceAll(apitest.WaitingRunID, "-", "")
	for path, body := range map[string]string{
		"/v1/conversations": `{}`, "/v1/conversations/conv_" + apitest.SessionID: `{"metadata":{"a":"b"}}`,
		"/v1/conversations/conv_" + apitest.SessionID + "/items": `{"items":[{"role":"user","content":"x"}]}`, "/v1/responses/resp_" + run + "/cancel": "",
	} {
		key := "Idempotency-Key: " + path
		first, again := do(server, request("POST", path, body, key)), do(server, request("POST", path, body, key))
		if first.Code > 299 || again.Code != first.Code || again.Body.String() != first.Body.String() || again.Header().Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: got %d %s, and then %d %s, want the same", path, first.Code, first.Body, again.Code, again.Body)
		}
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
			backend := apitest.New(t)
			failing := true
			backend.Hooks["Sessions.Create"] = func(ctx context.Context) error {
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
			compare.Equal(t, "status of another request with the key", 201, do(server, request("POST", "/api/v1/sessions", `{"title":"another"}`, withKey)).Code)
		})
	}
}

// Who goes away and comes back finds the work done.
func TestIdempotentWorkOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	backend := apitest.New(t)
	ctx, leave := context.WithCancel(t.Context())
	backend.Hooks["Sessions.Create"] = func(ctx context.Context) error { leave(); return ctx.Err() }
	opts, _ := options(backend)
	server := api.New(opts)
	before := count(t, backend)
	do(server, request("POST", "/api/v1/sessions", `{}`, withKey).WithContext(ctx))
	w := do(server, request("POST", "/api/v1/sessions", `{}`, withKey))
	compare.Equal(t, "want what the first one came to", []any{201, "true", before + 1}, []any{w.Code, w.Header().Get("Idempotency-Replayed"), count(t, backend)})
}

// lostAnswers are keys whose answers were erased, with what the requests came to.
type lostAnswers struct{ *repositories.IdempotencyKeys }

func (k lostAnswers) Begin(ctx context.Context, in core.KeyedRequest) (*core.KeyedAnswer, error) {
	known, err := k.IdempotencyKeys.Begin(ctx, in)
	if known != nil {
		known.Kept, known.Result = false, nil
	}
	return known, err
}

// Where the answer is gone, the work is not done again.
func TestIdempotentAnswerIsGone(t *testing.T) {
	t.Parallel()
	backend := apitest.New(t)
	opts, _ := options(backend)
	opts.Keys = lostAnswers{backend.Stores.Keys}
	server := api.New(opts)
	compare.Equal(t, "the first", 201, do(server, request("POST", "/api/v1/sessions", `{}`, withKey)).Code)
	n := count(t, backend)
	wantProblem(t, do(server, request("POST", "/api/v1/sessions", `{}`, withKey)), 409, "answer_not_kept")
	compare.Equal(t, "sessions and runs", n, count(t, backend))
}

// For what an agent answers, the key is the client_message_id.
func TestIdempotencyKeyOfMessages(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	var got []string
	for _, body := range []string{`{"content":"x"}`, `{"content":"x"}`, `{"content":"x","client_message_id":"c"}`} {
		w := do(server, request("POST", sessionPath()+"/messages", body, withKey, "Prefer: respond-async"))
		_, id, _ := strings.Cut(w.Body.String(), `"client_message_id":"`)
		got = append(got, id[:strings.Index(id, `"`)], w.Header().Get("Location"))
	}
	compare.Equal(t, "client message ids", "k-1 k-1 c, one run for the two", fmt.Sprintf("%s %s %s, %s", got[0], got[2], got[4], map[bool]string{true: "one run for the two"}[got[1] == got[3] && got[3] != got[5]]))
}

func TestIdempotencyKeyIsChecked(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	for _, key := range []string{"", strings.Repeat("k", 201), "ü", "a\tb"} {
		r := request("POST", "/api/v1/sessions", `{}`)
		r.Header["Idempotency-Key"] = []string{key}
		wantProblem(t, do(server, r), 422, "invalid")
		r = request("POST", sessionPath()+"/messages", `{"content":"x"}`)
		r.Header["Idempotency-Key"] = []string{key}
		wantProblem(t, do(server, r), 422, "invalid")
	}
	r := request("POST", "/api/v1/sessions", `{}`)
	r.Header["Idempotency-Key"] = []string{"a", "b"}
	wantProblem(t, do(server, r), 422, "invalid")
}

// brokenKeys is a store that does not answer.
type brokenKeys struct{ *repositories.IdempotencyKeys }

func (brokenKeys) Finish(context.Context, core.KeyedRequest, core.KeyedAnswer) error {
	return errors.New("disk on fire")
}

func (brokenKeys) Release(context.Context, core.KeyedRequest) error {
	return errors.New("disk on fire")
}

// What was done is answered, also when it cannot be kept.
func TestIdempotentAnswerThatCannotBeKept(t *testing.T) {
	t.Parallel()
	backend := apitest.New(t)
	opts, log := options(backend)
	opts.Keys = brokenKeys{backend.Stores.Keys}
	server := api.New(opts)
	first := do(server, request("POST", "/api/v1/sessions", `{}`, withKey))
	again := do(server, request("POST", "/api/v1/sessions", `{}`, withKey)) // by what the first one committed
	compare.Equal(t, "answers: want one session", []any{201, 201, first.Body.String()}, []any{first.Code, again.Code, again.Body.String()})
	wantProblem(t, do(server, request("POST", "/api/v1/sessions", `{"x":1}`, "Idempotency-Key: k-3")), 422, "invalid")
	compare.Equal(t, "log: want both faults", []int{2, 3}, []int{len(log.lines(t, "idempotent answer not stored")), len(log.lines(t, "idempotency key not released"))})
}
