package api_test

import (
	"context"
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
