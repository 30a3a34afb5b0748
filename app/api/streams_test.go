package api_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/api"
	"bobbin/app/api/auth"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
)

// asStream makes a request ask for events.
const asStream = "Accept: text/event-stream"

func TestStreamOfASend(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	for _, accept := range []string{asStream, "Accept: application/json;q=0.5, Text/Event-Stream;q=0.9", asStream + "; q=0.1"} {
		w := do(api.New(opts), request("POST", sessionPath()+"/messages", `{"content":"Hello"}`, accept, "Prefer: respond-async"))
		if w.Code != 200 || w.Header().Get("Content-Type") != "text/event-stream" || w.Header().Get("Cache-Control") != "no-cache" || w.Header().Get("X-Accel-Buffering") != "no" {
			t.Fatalf("got %d %v, want a stream that nobody keeps back", w.Code, w.Header())
		}
		body := w.Body.String()
		want := ": connected\n\nretry: 1000\nid: "
		compare.True(t, strings.HasPrefix(body, want) && strings.Contains(body, "\nevent: run.started\ndata: {\"session_id\":"), "got stream %.200q, want %q at its beginning", body, want)
		if want := ":\"Hi "; !strings.Contains(body, want) || strings.Count(body, "\nevent: run.succeeded") != 1 {
			t.Errorf("got stream %q, want %q in it", body, want)
		}
	}
	for _, accept := range []string{"", "Accept: application/json", "Accept: text/event-stream;q=0", "Accept: text/event-stream; q=0.000", "Accept: */*"} {
		w := do(api.New(opts), request("POST", sessionPath()+"/messages", `{"content":"Hello"}`, accept))
		got := w.Header().Get("Content-Type")
		compare.True(t, got == "application/json", "got content type %q for %q, want JSON", got, accept)
	}
}

// TestResume: where a stream begins (API, Last-Event-ID).
func TestResume(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	session := "/api/v1/sessions/" + apitest.WaitingID
	feed := watch(t, server, session+"/events") // from now on
	compare.Contains(t, "the session", `"last_event_id":`+feed.Header().Get("Last-Event-ID")+"}", do(server, request("GET", session+"/messages", "")).Body.String())
	for _, tt := range []struct {
		path, header string
		want         string // the first number
	}{
		{session + "/events?after=1", "", "2"},
		{session + "/events?after=0", "", "1"},
		{session + "/events?after=1", "Last-Event-ID: 2", "3"},
		{runPath() + "/events", "", "1"},
		{runPath() + "/events?after=1", "", "2"},
		{runPath() + "/events", "Last-Event-ID: 2", "3"},
	} {
		s := watch(t, server, tt.path, tt.header)
		for !strings.Contains(s.text.String(), "\nevent: ") {
			<-s.flushed
		}
		s.end()
		first, _, _ := strings.Cut(s.text.String(), "\nevent: ")
		first = first[strings.LastIndex(first, " ")+1:]
		compare.Equal(t, tt.path+" "+tt.header, tt.want, first)
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
			backend := apitest.New(t)
			backend.Hooks["Events.Last"] = failing(tt.err)
			opts, log := options(backend)
			server := api.New(opts)
			want := func(w *httptest.ResponseRecorder, logged int) {
				t.Helper()
				_, last, _ := strings.Cut(w.Body.String(), "event: error\ndata: ")
				compare.True(t, w.Code == 200 && strings.Contains(last, tt.code) && strings.HasSuffix(last, "}\n\n") && !strings.Contains(last, "secret"), "got %d %q, want an error event with %s", w.Code, w.Body, tt.code)
				compare.Equal(t, "log lines", logged, len(log.lines(t, "request failed")))
			}
			want(do(server, request("GET", runPath()+"/events", "")), tt.logged)
			looked := false
			backend.Hooks["Runs.Get"] = func(context.Context) error { // the second time it is read because of the event
				if looked = !looked; looked {
					return nil
				}
				return tt.err
			}
			w := do(server, request("GET", "/api/v1/runs/"+apitest.WaitingRunID+"/events", "", "Last-Event-ID: 999"))
			want(w, 2*tt.logged)
			compare.Contains(t, "before the error", "\nevent: resync\n", w.Body.String())
		})
	}
}

// TestWaitHasALimit: a waiting request is answered in time, with the run, which goes on.
func TestWaitHasALimit(t *testing.T) {
	t.Parallel()
	backend := apitest.New(t)
	question, open := apitest.Gate(t)
	for prefer, limit := range map[string]time.Duration{
		"":               time.Millisecond,
		"Prefer: wait=1": time.Hour,
		"Prefer: handling=lenient, WAIT=1, respond-async": time.Hour,
		"Prefer: wait=7000": time.Millisecond, // no longer than the limit
		"Prefer: wait=soon": time.Millisecond,
	} {
		opts, _ := options(backend)
		opts.Limits.Wait = limit
		w := do(api.New(opts), request("POST", sessionPath()+"/messages", `{"content":"`+question+`"}`, prefer))
		if location := w.Header().Get("Location"); w.Code != 202 || !strings.HasPrefix(location, "/api/v1/runs/") || !strings.Contains(w.Body.String(), strings.TrimPrefix(location, "/api/v1/runs/")) {
			t.Errorf("%s: got %d at %q, want 202 and the run; body %s", prefer, w.Code, location, w.Body)
		}
	}
	open()
	opts, _ := options(backend)
	compare.Equal(t, "status after the others", 200, do(api.New(opts), request("POST", sessionPath()+"/messages", `{"content":"x"}`)).Code)
}

// A run that ends before a request begins to wait for it is an answer, also for one that waits while it is canceled.
func TestRunEndsBeforeTheWait(t *testing.T) {
	t.Parallel()
	backend := apitest.New(t)
	question, open := apitest.Gate(t)
	asked := make(chan *httptest.ResponseRecorder, 1)
	var first *httptest.ResponseRecorder
	backend.Hooks["Runs.CancelRequested"] = func(context.Context) error { // it has ended when this returns
		open()
		first = <-asked
		return nil
	}
	opts, _ := options(backend)
	opts.Limits.Wait = time.Minute
	server := api.New(opts)
	feed := watch(t, server, sessionPath()+"/events")
	go func() {
		asked <- do(server, request("POST", sessionPath()+"/messages", `{"content":"`+question+`"}`))
	}()
	<-feed.flushed // the run has begun
	_, run, _ := strings.Cut(feed.text.String(), `"run_id":"`)
	run, _, _ = strings.Cut(run, `"`)
	second := do(server, request("POST", "/api/v1/runs/"+run+"/cancel", `{"wait":true}`))
	for name, w := range map[string]*httptest.ResponseRecorder{"message": first, "cancel": second} {
		compare.Equal(t, name+": want the run that has ended", []any{200, true}, []any{w.Code, strings.Contains(w.Body.String(), `"finished_at":`)})
	}
}

// A run that ends just when the time of a request is over is an answer.
func TestRunEndsAtTheLimit(t *testing.T) {
	t.Parallel()
	backend := apitest.New(t)
	question, open := apitest.Gate(t)
	opts, _ := options(backend)
	backend.Hooks["Runs.Get"] = func(context.Context) error { // the time is over
		delete(backend.Hooks, "Runs.Get")
		open()
		do(api.New(backend.Options), request("POST", sessionPath()+"/messages", `{"content":"what is behind it"}`))
		return nil
	}
	opts.Limits.Wait = time.Millisecond
	w := do(api.New(opts), request("POST", sessionPath()+"/messages", `{"content":"`+question+`"}`))
	compare.Equal(t, "want the answer that came at the last moment", []any{200, true}, []any{w.Code, strings.Contains(w.Body.String(), `"message":{`)})
}

// TestCancelNotTaken: while the database is away nobody is told that the run ends.
func TestCancelNotTaken(t *testing.T) {
	t.Parallel()
	backend := apitest.New(t)
	backend.Hooks["Runs.RequestCancel"] = failing(&core.Error{Kind: core.ErrUnavailable, Code: "database_unavailable", Message: "away", Err: core.ErrNoDatabase})
	opts, _ := options(backend)
	wantProblem(t, do(api.New(opts), request("POST", "/api/v1/runs/"+apitest.WaitingRunID+"/cancel", `{"wait":true}`)), 503, "database_unavailable")
}

// TestCallerGoesAway: the run goes on, and nobody is told of an error.
func TestCallerGoesAway(t *testing.T) {
	t.Parallel()
	for _, headers := range [][]string{nil, {asStream}} {
		question, open := apitest.Gate(t)
		opts, log := options(apitest.New(t))
		server := api.New(opts)
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan *httptest.ResponseRecorder)
		feed := watch(t, server, sessionPath()+"/events")
		go func() {
			ended <- do(server, request("POST", sessionPath()+"/messages", `{"content":"`+question+`"}`, headers...).WithContext(ctx))
		}()
		<-feed.flushed // the run has begun
		leave()
		w := <-ended
		compare.True(t, !strings.Contains(w.Body.String(), "error") && len(log.lines(t, "request failed")) == 0, "got %q and log %s, want no error", w.Body, log)
		open()
		compare.Contains(t, "the next answer: want the run to go on", `"content":"`+question, do(server, request("POST", sessionPath()+"/messages", `{"content":"x"}`)).Body.String()+
			do(server, request("GET", sessionPath()+"/messages", "")).Body.String())
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
			opts, _ := options(apitest.New(t))
			opts.Limits.Streams, opts.Limits.StreamsPerOwner = tt.total, tt.owner
			server := api.New(opts)
			first := watch(t, server, sessionPath()+"/events")
			before := do(server, request("GET", sessionPath(), "")).Body.String()
			for _, r := range []*http.Request{
				request("GET", runPath()+"/events", ""), request("GET", sessionPath()+"/events", ""),
				request("POST", sessionPath()+"/messages", `{"content":"x"}`), request("POST", sessionPath()+"/messages", `{"content":"x"}`, asStream),
				request("POST", runPath()+"/cancel", `{"wait":true}`), request("POST", sessionPath()+"/summarize", ""),
			} {
				w := do(server, r)
				if p := wantProblem(t, w, tt.status, "too_many_streams"); tt.status == 429 && !strings.Contains(p.Detail, "close some") { // streams do not end by themselves
					t.Errorf("got %q, want what to do", p.Detail)
				}
				compare.Equal(t, "Retry-After", "5", w.Header().Get("Retry-After"))
			}
			compare.Equal(t, "the session has changed", before, do(server, request("GET", sessionPath(), "")).Body.String())
			compare.Equal(t, "for a request that is not held", 202, do(server, request("POST", sessionPath()+"/messages", `{"content":"x"}`, "Prefer: respond-async")).Code)
			first.end()
			compare.Equal(t, "for the first stream", 200, first.Code)
			compare.Equal(t, "for a message that is empty", 422, do(server, request("POST", sessionPath()+"/messages", `{"content":" "}`)).Code) // and holds nothing
			compare.Equal(t, "after the first had ended", 200, do(server, request("POST", sessionPath()+"/messages", `{"content":"x"}`)).Code)
		})
	}
}

// users are tokens and whom they speak for; others are refused, "eyJ.late.x" as expired.
type users map[string]core.Identity

func (u users) Identify(_ context.Context, token string) (core.Identity, error) {
	if who, ok := u[token]; ok {
		return who, nil
	}
	if token == "eyJ.late.x" {
		return core.Identity{}, &core.Error{Kind: core.ErrUnauthorized, Code: core.CodeTokenExpired, Message: "the token has expired"}
	}
	return core.Identity{}, &core.Error{Kind: core.ErrUnauthorized, Code: auth.CodeInvalid, Message: `no "good" token – sorry`}
}

// The headers of two users of one owner.
const (
	asEve = "Authorization: Bearer eyJ.eve.x"
	asKim = "Authorization: Bearer eyJ.kim.x"
)

// userOptions are those of a server with two end users of the local owner.
func userOptions(b *apitest.World) api.Options {
	opts, _ := options(b)
	user := func(name string) core.Identity {
		return core.Identity{Owner: core.LocalOwner, User: name, Rights: core.ReadWrite, Expires: time.Now().Add(time.Minute)}
	}
	opts.Auth = auth.New(auth.Options{VerifyToken: users{"eyJ.eve.x": user("eve"), "eyJ.kim.x": user("kim")}.Identify})
	return opts
}

// A token that is not taken is told why, as RFC 6750 has it; of keys nothing is told.
func TestChallenge(t *testing.T) {
	t.Parallel()
	server := api.New(userOptions(apitest.New(t)))
	for secret, want := range map[string]struct{ code, header string }{
		"eyJ.bad.x":  {"token_invalid", `Bearer realm="bobbin", error="invalid_token"`},
		"eyJ.late.x": {"token_expired", `Bearer realm="bobbin", error="invalid_token"`},
		"bob_wrong":  {"unauthorized", `Bearer realm="bobbin"`},
	} {
		w := do(server, request("GET", sessionPath(), "", "Authorization: Bearer "+secret))
		wantProblem(t, w, 401, want.code)
		compare.Equal(t, secret, want.header, w.Header().Get("WWW-Authenticate"))
	}
}

// A stream ends when its reader's token does, with an event that says so; the time of
// another stream does not end.
func TestStreamEndsWithTheToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := api.New(userOptions(apitest.New(t)))
		begin := time.Now()
		endless := watch(t, server, sessionPath()+"/events")
		w := do(server, request("GET", "/api/v1/events", "", asEve))
		compare.Equal(t, "a stream of: want the minute of its token", time.Minute, time.Since(begin))
		_, last, _ := strings.Cut(w.Body.String(), "event: error\ndata: ")
		if w.Code != 200 || !strings.Contains(last, `"status":401`) || !strings.Contains(last, `"code":"token_expired"`) || !strings.HasSuffix(last, "}\n\n") {
			t.Errorf("got %d %q, want an error event at the end", w.Code, w.Body)
		}
		select {
		case <-endless.ended:
			t.Error("the stream without a token ended, too")
		default:
		}
	})
}

// Every user has a rate and streams of their own: one who uses them up holds up nobody
// else of the owner.
func TestUserLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		opts := userOptions(apitest.New(t))
		opts.Limits.UserPerSecond, opts.Limits.StreamsPerUser = 1, 1
		server := api.New(opts)
		eve := watch(t, server, "/api/v1/events", asEve)
		wantProblem(t, do(server, request("GET", "/api/v1/events", "", asEve)), 429, "too_many_streams")
		compare.Equal(t, "for another user's stream", 200, watch(t, server, "/api/v1/events", asKim).Code)
		eve.end()
		for range 8 {
			do(server, request("GET", "/version", "", asEve))
		}
		w := do(server, request("GET", "/version", "", asEve))
		p := wantProblem(t, w, 429, "rate_limited")
		compare.True(t, strings.Contains(p.Detail, "user_requests_per_second") && w.Header().Get("Retry-After") != "", "got %q, want which setting it is, and when to come again", p.Detail)
		compare.Equal(t, "for another user", 200, do(server, request("GET", "/version", "", asKim)).Code)
		time.Sleep(time.Second)
		compare.Equal(t, "after the time", 200, do(server, request("GET", "/version", "", asEve)).Code)
	})
}

// The last quarter of the places for open requests is for owners who have few.
func TestPlacesForOtherOwners(t *testing.T) {
	t.Parallel()
	opts := userOptions(apitest.New(t))
	known := users{}
	for _, name := range []string{"ann", "bob", "carl"} {
		known["eyJ."+name+".x"] = core.Identity{Owner: name, Rights: core.ReadWrite}
	}
	opts.Auth = auth.New(auth.Options{VerifyToken: known.Identify})
	opts.Limits.Streams, opts.Limits.StreamsPerOwner = 8, 4
	server := api.New(opts)
	ask := func(name string) *stream {
		return watch(t, server, "/api/v1/events", "Authorization: Bearer eyJ."+name+".x")
	}
	for _, name := range []string{"ann", "ann", "ann", "ann", "bob", "bob"} {
		compare.Equal(t, "for a stream of "+name, 200, ask(name).Code)
	}
	wantProblem(t, ask("ann").answer(), 429, "too_many_streams")
	wantProblem(t, ask("bob").answer(), 429, "too_many_streams")
	compare.Equal(t, "for an owner with none", []int{200, 200}, []int{ask("carl").Code, ask("carl").Code})
	wantProblem(t, ask("carl").answer(), 503, "too_many_streams")
}
