package api_test

import (
	"context"
	"iter"
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
func userOptions(b *apitest.Backend) api.Options {
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
	server := api.New(userOptions(apitest.New()))
	for secret, want := range map[string]struct{ code, header string }{
		"eyJ.bad.x":  {"token_invalid", `Bearer realm="bobbin", error="invalid_token"`},
		"eyJ.late.x": {"token_expired", `Bearer realm="bobbin", error="invalid_token"`},
		"bob_wrong":  {"unauthorized", `Bearer realm="bobbin"`},
	} {
		w := do(server, request("GET", sessionPath, "", "Authorization: Bearer "+secret))
		wantProblem(t, w, 401, want.code)
		compare.Equal(t, secret, want.header, w.Header().Get("WWW-Authenticate"))
	}
}

// A stream ends when its reader's token does, with an event that says so; the time of
// another stream does not end.
func TestStreamEndsWithTheToken(t *testing.T) {
	t.Parallel()
	for _, path := range []string{sessionPath + "/events", runPath + "/events"} {
		synctest.Test(t, func(t *testing.T) {
			backend := apitest.New()
			backend.Streaming = func(ctx context.Context, _ core.Cursor) iter.Seq2[core.Event, error] {
				return func(yield func(core.Event, error) bool) {
					if yield(backend.Events[0], nil) {
						<-ctx.Done()
					}
				}
			}
			server := api.New(userOptions(backend))
			begin := time.Now()
			w := do(server, request("GET", path, "", asEve))
			compare.Equal(t, "a stream of: want the minute of its token", time.Minute, time.Since(begin))
			_, last, _ := strings.Cut(w.Body.String(), "event: error\ndata: ")
			if w.Code != 200 || !strings.Contains(last, `"status":401`) || !strings.Contains(last, `"code":"token_expired"`) || !strings.HasSuffix(last, "}\n\n") {
				t.Errorf("got %d %q, want an error event at the end", w.Code, w.Body)
			}
			gone, leave := context.WithTimeout(t.Context(), time.Hour)
			defer leave()
			w = do(server, request("GET", path, "").WithContext(gone))
			if strings.Contains(w.Body.String(), "event: error") || time.Since(begin) != time.Hour+time.Minute {
				t.Errorf("got %q after %v without a token, want a stream until it is left", w.Body, time.Since(begin))
			}
		})
	}
}

// Every user has a rate and streams of their own: one who uses them up holds up nobody
// else of the owner.
func TestUserLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		backend := apitest.New()
		held, let := make(chan struct{}), make(chan struct{})
		backend.Streaming = func(context.Context, core.Cursor) iter.Seq2[core.Event, error] {
			return func(func(core.Event, error) bool) { held <- struct{}{}; <-let }
		}
		opts := userOptions(backend)
		opts.Limits.UserPerSecond, opts.Limits.StreamsPerUser = 1, 1
		server := api.New(opts)
		ended := make(chan *httptest.ResponseRecorder, 2)
		watch := func(who string) { ended <- do(server, request("GET", runPath+"/events", "", who)) }
		go watch(asEve)
		<-held
		wantProblem(t, do(server, request("GET", runPath+"/events", "", asEve)), 429, "too_many_streams")
		go watch(asKim)
		<-held
		close(let)
		<-ended
		<-ended
		for range 8 {
			do(server, request("GET", sessionPath, "", asEve))
		}
		w := do(server, request("GET", sessionPath, "", asEve))
		if p := wantProblem(t, w, 429, "rate_limited"); !strings.Contains(p.Detail, "user_requests_per_second") || w.Header().Get("Retry-After") == "" {
			t.Errorf("got %q, want which setting it is, and when to come again", p.Detail)
		}
		compare.Equal(t, "for another user", 200, do(server, request("GET", sessionPath, "", asKim)).Code)
		time.Sleep(time.Second)
		compare.Equal(t, "after the time", 200, do(server, request("GET", sessionPath, "", asEve)).Code)
	})
}

// The last quarter of the places for open requests is for owners who have few.
func TestPlacesForOtherOwners(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	held, let := make(chan struct{}), make(chan struct{})
	backend.Streaming = func(context.Context, core.Cursor) iter.Seq2[core.Event, error] {
		return func(func(core.Event, error) bool) { held <- struct{}{}; <-let }
	}
	opts := userOptions(backend)
	owner := func(name string) core.Identity { return core.Identity{Owner: name, Rights: core.ReadWrite} }
	opts.Auth = auth.New(auth.Options{VerifyToken: users{"eyJ.a.x": owner("ann"), "eyJ.b.x": owner("bob"), "eyJ.c.x": owner("carl")}.Identify})
	opts.Limits.Streams, opts.Limits.StreamsPerOwner = 8, 4
	server := api.New(opts)
	ended := make(chan *httptest.ResponseRecorder, 8)
	ask := func(token string) *http.Request {
		return request("GET", runPath+"/events", "", "Authorization: Bearer "+token)
	}
	for _, token := range []string{"eyJ.a.x", "eyJ.a.x", "eyJ.a.x", "eyJ.a.x", "eyJ.b.x", "eyJ.b.x"} {
		go func() { ended <- do(server, ask(token)) }()
		<-held
	}
	for _, token := range []string{"eyJ.a.x", "eyJ.b.x"} {
		wantProblem(t, do(server, ask(token)), 429, "too_many_streams")
	}
	for range 2 {
		go func() { ended <- do(server, ask("eyJ.c.x")) }()
		<-held
	}
	wantProblem(t, do(server, ask("eyJ.c.x")), 503, "too_many_streams")
	close(let)
	for range 8 {
		compare.Equal(t, "for a stream", 200, (<-ended).Code)
	}
}
