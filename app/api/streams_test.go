package api_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/api"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
)

// asStream makes a request ask for events.
const asStream = "Accept: text/event-stream"

func TestStreamOfASend(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New())
	for _, accept := range []string{asStream, "Accept: application/json;q=0.5, Text/Event-Stream;q=0.9", asStream + "; q=0.1"} {
		w := do(api.New(opts), request("POST", sessionPath+"/messages", `{"content":"Hello"}`, accept, "Prefer: respond-async"))
		if w.Code != 200 || w.Header().Get("Content-Type") != "text/event-stream" || w.Header().Get("Cache-Control") != "no-cache" || w.Header().Get("X-Accel-Buffering") != "no" {
			t.Fatalf("got %d %v, want a stream that nobody keeps back", w.Code, w.Header())
		}
		body := w.Body.String()
		if want := ": connected\n\nretry: 1000\nid: 1\nevent: run.started\ndata: {\"session_id\":"; !strings.HasPrefix(body, want) {
			t.Errorf("got stream %.200q, want %q at its beginning", body, want)
		}
		delta := "\n\nevent: message.delta\ndata: {\"message_id\":\"" + string(apitest.AnswerID) + "\",\"offset_utf16\":3,\"text\":\"<there>\"}\n\n"
		if !strings.Contains(body, delta) {
			t.Errorf("got stream %q, want %q in it", body, delta)
		}
		compare.Equal(t, "events", 8, strings.Count(body, "\nevent: "))
	}
	for _, accept := range []string{"", "Accept: application/json", "Accept: text/event-stream;q=0", "Accept: text/event-stream; q=0.000", "Accept: */*"} {
		w := do(api.New(opts), request("POST", sessionPath+"/messages", `{"content":"Hello"}`, accept))
		if got := w.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("got content type %q for %q, want JSON", got, accept)
		}
	}
}

// TestResume: where a stream begins (API, Last-Event-ID).
func TestResume(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, method, path string
		headers            []string
		want               core.Cursor
	}{
		{"session from now on", "Watch", sessionPath + "/events", nil, core.Cursor{After: 4}},
		{"session after a number", "Watch", sessionPath + "/events?after=3", nil, core.Cursor{After: 3}},
		{"session from the beginning", "Watch", sessionPath + "/events?after=0", nil, core.Cursor{}},
		{"session comes back", "Watch", sessionPath + "/events?after=3", []string{"Last-Event-ID: 7"}, core.Cursor{After: 7}},
		{"run", "WatchRun", runPath + "/events", nil, core.Cursor{}},
		{"run after a number", "WatchRun", runPath + "/events?after=3", nil, core.Cursor{After: 3}},
		{"run comes back", "WatchRun", runPath + "/events", []string{"Last-Event-ID: 7"}, core.Cursor{After: 7}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			backend := apitest.New()
			backend.Hooks[tt.method] = failing(core.Errorf(core.ErrConflict, "enough"))
			opts, _ := options(backend)
			do(api.New(opts), request("GET", tt.path, "", tt.headers...))
			calls := backend.Calls()
			last := calls[len(calls)-1]
			if diff := cmp.Diff(tt.want, last.Args[1]); last.Method != tt.method || diff != "" {
				t.Errorf("%s begins at (-want +got):\n%s", last.Method, diff)
			}
		})
	}
}

// TestErrorInAStream: after the first byte an error is an event.
func TestErrorInAStream(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		err    error
		code   string
		logged int
	}{
		{"shown", &core.Error{Kind: core.ErrUnavailable, Code: "slow_reader", Message: "too slow"}, `"status":503,"detail":"too slow"`, 1},
		{"internal", errors.New("secret"), `"status":500,"detail":"internal error"`, 1},
		{"of the caller", core.Errorf(core.ErrNotFound, "gone"), `"status":404,"detail":"gone"`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			backend := apitest.New()
			backend.Streaming = func(context.Context, core.Cursor) iter.Seq2[core.Event, error] {
				return func(yield func(core.Event, error) bool) {
					if yield(backend.Events[0], nil) {
						yield(core.Event{}, tt.err)
					}
				}
			}
			opts, log := options(backend)
			w := do(api.New(opts), request("GET", runPath+"/events", ""))
			_, last, _ := strings.Cut(w.Body.String(), "event: error\ndata: ")
			if w.Code != 200 || !strings.Contains(last, tt.code) || !strings.HasSuffix(last, "}\n\n") || strings.Contains(last, "secret") {
				t.Errorf("got %d %q, want an error event with %s", w.Code, w.Body, tt.code)
			}
			compare.Equal(t, "log lines", tt.logged, len(log.lines(t, "request failed")))
		})
	}
}

// untilCanceled is a hook that waits for the end of its context.
func untilCanceled(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestWaitHasALimit: a waiting request is answered in time, with the run.
func TestWaitHasALimit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		prefer string
		wait   apitest.Hook
		status core.RunStatus // of the run after the waiting
		took   time.Duration
		want   int
	}{
		{"limit", "", untilCanceled, core.RunRunning, 5 * time.Minute, 202},
		{"preference", "Prefer: wait=7", untilCanceled, core.RunRunning, 7 * time.Second, 202},
		{"preference in other words", "Prefer: handling=lenient, WAIT=7, respond-async", untilCanceled, core.RunRunning, 7 * time.Second, 202},
		{"preference over the limit", "Prefer: wait=7000", untilCanceled, core.RunRunning, 5 * time.Minute, 202},
		{"preference that is none", "Prefer: wait=soon", untilCanceled, core.RunRunning, 5 * time.Minute, 202},
		{"ended just then", "", untilCanceled, core.RunSucceeded, 5 * time.Minute, 200},
		{"the server stops", "", failing(core.Errorf(core.ErrUnavailable, "stopping")), core.RunRunning, 0, 202},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				backend := apitest.New()
				backend.Hooks["Wait"] = tt.wait
				backend.Accepted.Status = tt.status
				opts, _ := options(backend)
				begin := time.Now()
				w := do(api.New(opts), request("POST", sessionPath+"/messages", `{"content":"x"}`, tt.prefer))
				if w.Code != tt.want || w.Header().Get("Location") != runPath {
					t.Errorf("got %d at %q, want %d at %q; body %s", w.Code, w.Header().Get("Location"), tt.want, runPath, w.Body)
				}
				if took := time.Since(begin); took != tt.took {
					t.Errorf("got an answer after %v, want %v", took, tt.took)
				}
			})
		})
	}
}

// TestCancelNotTaken: while the database is away nobody is told that the run ends.
func TestCancelNotTaken(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	backend.Hooks["Cancel"] = func(context.Context) error {
		return &core.Error{Kind: core.ErrUnavailable, Code: "database_unavailable", Message: "away", Err: core.ErrNoDatabase}
	}
	opts, _ := options(backend)
	wantProblem(t, do(api.New(opts), request("POST", runPath+"/cancel", `{"wait":true}`)), 503, "database_unavailable")
}

// TestCallerGoesAway: the run goes on, and nobody is told of an error.
func TestCallerGoesAway(t *testing.T) {
	t.Parallel()
	for _, headers := range [][]string{nil, {asStream}} {
		backend := apitest.New()
		backend.Hooks["Wait"] = untilCanceled
		started := make(chan struct{}, 1)
		backend.Streaming = func(ctx context.Context, _ core.Cursor) iter.Seq2[core.Event, error] {
			return func(yield func(core.Event, error) bool) {
				started <- struct{}{}
				<-ctx.Done()
				yield(core.Event{}, ctx.Err())
			}
		}
		opts, log := options(backend)
		ctx, leave := context.WithCancel(t.Context())
		r := request("POST", sessionPath+"/messages", `{"content":"x"}`, headers...).WithContext(ctx)
		if headers == nil {
			backend.Hooks["Wait"] = func(ctx context.Context) error { leave(); return untilCanceled(ctx) }
		} else {
			go func() { <-started; leave() }()
		}
		w := do(api.New(opts), r)
		leave()
		for _, call := range backend.Calls() {
			if call.Method == "Cancel" {
				t.Error("got a cancel, want the run to go on")
			}
		}
		if strings.Contains(w.Body.String(), "error") || len(log.lines(t, "request failed")) != 0 {
			t.Errorf("got %q and log %s, want no error", w.Body, log)
		}
	}
}

// TestHeldRequestsAreLimited: nothing is begun for a request that cannot be held.
func TestHeldRequestsAreLimited(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		total, owner int
		status       int
	}{{"of all", 1, 9, 503}, {"of one owner", 9, 1, 429}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			backend := apitest.New()
			held, let := make(chan struct{}), make(chan struct{})
			backend.Streaming = func(context.Context, core.Cursor) iter.Seq2[core.Event, error] {
				return func(func(core.Event, error) bool) { close(held); <-let }
			}
			opts, _ := options(backend)
			opts.Limits.Streams, opts.Limits.StreamsPerOwner = tt.total, tt.owner
			server := api.New(opts)
			first := make(chan *httptest.ResponseRecorder)
			go func() { first <- do(server, request("GET", runPath+"/events", "")) }()
			<-held
			for _, r := range []*http.Request{
				request("GET", runPath+"/events", ""), request("GET", sessionPath+"/events", ""),
				request("POST", sessionPath+"/messages", `{"content":"x"}`), request("POST", sessionPath+"/messages", `{"content":"x"}`, asStream),
				request("POST", runPath+"/cancel", `{"wait":true}`), request("POST", sessionPath+"/summarize", ""),
			} {
				w := do(server, r)
				wantProblem(t, w, tt.status, "too_many_streams")
				compare.Equal(t, "Retry-After", "5", w.Header().Get("Retry-After"))
			}
			for _, call := range backend.Calls() {
				if call.Method == "Send" || call.Method == "Cancel" || call.Method == "Summarize" {
					t.Errorf("got a call of %s, want none", call.Method)
				}
			}
			compare.Equal(t, "for a request that is not held", 202, do(server, request("POST", sessionPath+"/messages", `{"content":"x"}`, "Prefer: respond-async")).Code)
			close(let)
			compare.Equal(t, "for the first stream", 200, (<-first).Code)
			compare.Equal(t, "after the first had ended", 200, do(server, request("POST", sessionPath+"/messages", `{"content":"x"}`)).Code)
		})
	}
}
