package auth_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/api/auth"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// ask is a request to be judged; empty fields are those of a local program.
type ask struct {
	method, remote, host string
	tls, old             bool // old: HTTP/1.0
	headers              map[string]string
}

func (a ask) request() *http.Request {
	if a.method == "" {
		a.method = http.MethodGet
	}
	r := httptest.NewRequest(a.method, "/api/v1/sessions", nil)
	r.Host, r.RemoteAddr = "localhost:8080", "127.0.0.1:40000"
	if a.host != "" {
		r.Host = a.host
	}
	if a.remote != "" {
		r.RemoteAddr = a.remote
	}
	if a.tls {
		r.TLS = &tls.ConnectionState{}
	}
	if a.old {
		r.Proto, r.ProtoMinor = "HTTP/1.0", 0
	}
	for name, value := range a.headers {
		r.Header.Set(name, value)
	}
	return r
}

func check(t *testing.T, a *auth.Authenticator, ask ask, want core.Identity, wantErr error) {
	t.Helper()
	got, err := a.Authenticate(ask.request())
	must.True(t, errors.Is(err, wantErr), "got error %v, want %v", err, wantErr)
	compare.Equal(t, "identity", want, got)
}

func header(name, value string) map[string]string { return map[string]string{name: value} }

func TestKeys(t *testing.T) {
	t.Parallel()
	keys := []auth.Key{auth.NewKey("ann", "s3cret", core.ReadWrite), auth.NewKey("bob", "other", core.CanRead), auth.NewKey("ann", "newer", core.ReadWrite)}
	ann := core.Identity{Owner: "ann", Key: "ann", Rights: core.ReadWrite}
	local := core.Identity{Owner: core.LocalOwner, Rights: core.Everything}
	none, far := core.Identity{}, "203.0.113.9:4711"
	may, must := auth.Options{Keys: keys, LocalToken: "tok"}, auth.Options{Keys: keys, LocalToken: "tok", Required: true}
	empty, sdk := &shelf{keys: map[string]core.APIKey{}}, header("Authorization", "Bearer none")
	tests := []struct {
		name    string
		options auth.Options
		ask     ask
		want    core.Identity
		wantErr error
	}{
		{"bearer", must, ask{remote: far, host: "bobbin.example", headers: header("Authorization", "Bearer s3cret")}, ann, nil},
		{"bearer in other letters", must, ask{headers: header("Authorization", "bearer  s3cret ")}, ann, nil},
		{"header", must, ask{headers: header("X-API-Key", "s3cret")}, ann, nil},
		{"second secret of one owner", must, ask{headers: header("X-API-Key", "newer")}, ann, nil},
		{"other owner", must, ask{headers: header("X-API-Key", "other")}, core.Identity{Owner: "bob", Key: "bob", Rights: core.CanRead}, nil},
		{"with a foreign origin", must, ask{headers: map[string]string{"X-API-Key": "s3cret", "Origin": "https://evil.example"}}, ann, nil},
		{"in both headers", must, ask{headers: map[string]string{"Authorization": "Bearer s3cret", "X-API-Key": "s3cret"}}, ann, nil},
		{"with another scheme", must, ask{headers: map[string]string{"Authorization": "Basic s3cret", "X-API-Key": "s3cret"}}, none, core.ErrUnauthorized},
		{"wrong", must, ask{headers: header("X-API-Key", "s3cre")}, none, core.ErrUnauthorized},
		{"wrong though keys are not required", may, ask{headers: header("X-API-Key", "nope")}, none, core.ErrUnauthorized},
		{"other scheme", may, ask{headers: header("Authorization", "Basic YTpi")}, none, core.ErrUnauthorized},
		{"empty bearer", must, ask{headers: header("Authorization", "Bearer ")}, none, core.ErrUnauthorized},
		{"empty bearer, not required, local", may, ask{headers: header("Authorization", "Bearer ")}, none, core.ErrUnauthorized},
		{"empty header, not required, local", may, ask{headers: header("X-API-Key", "")}, none, core.ErrUnauthorized},
		{"empty bearer, not required, from afar", may, ask{remote: far, headers: header("Authorization", "Bearer ")}, none, core.ErrUnauthorized},
		{"none, required, local", must, ask{}, none, core.ErrUnauthorized},
		{"none, not required, local", may, ask{}, local, nil},
		{"none, not required, from afar", may, ask{remote: far}, none, core.ErrUnauthorized},
		{"local token", must, ask{host: "bobbin.example", headers: header("Authorization", "Bearer tok")}, core.Identity{Owner: core.LocalOwner, Operator: true, Rights: core.Everything}, nil},
		{"local token from afar", must, ask{remote: far, headers: header("Authorization", "Bearer tok")}, none, core.ErrUnauthorized},
		// Without any key, a program on this machine may send whatever its SDK insists on. As soon as there is a
		// key, and for all others, a wrong secret is refused.
		{"no keys", auth.Options{}, ask{headers: sdk}, local, nil},
		{"no keys, by X-API-Key", auth.Options{}, ask{headers: header("X-API-Key", "none")}, local, nil},
		{"no keys, an empty bearer", auth.Options{}, ask{headers: header("Authorization", "Bearer ")}, local, nil},
		{"an empty store, an empty bearer", auth.Options{Stored: storedIn(empty)}, ask{headers: header("Authorization", "Bearer ")}, local, nil},
		{"an empty store", auth.Options{Stored: storedIn(empty)}, ask{headers: sdk}, local, nil},
		{"a revoked key", auth.Options{Stored: storedIn(newShelf(core.NewSecret()))}, ask{headers: sdk}, none, core.ErrUnauthorized},
		{"a configured key", auth.Options{Keys: []auth.Key{auth.NewKey("ann", "s3cret", core.ReadWrite)}}, ask{headers: sdk}, none, core.ErrUnauthorized},
		{"keys are required", auth.Options{Required: true}, ask{headers: sdk}, none, core.ErrUnauthorized},
		{"from afar", auth.Options{}, ask{remote: "203.0.113.9:4711", headers: sdk}, none, core.ErrUnauthorized},
		{"a foreign host", auth.Options{}, ask{host: "evil.example", headers: sdk}, none, core.ErrForbidden},
		{"through a proxy", auth.Options{}, ask{headers: map[string]string{"Authorization": "Bearer none", "X-Forwarded-For": "1.2.3.4"}}, none, core.ErrForbidden},
		{"a page of another origin", auth.Options{}, ask{headers: map[string]string{"Authorization": "Bearer none", "Origin": "https://evil.example"}}, none, core.ErrForbidden},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			check(t, auth.New(tt.options), tt.ask, tt.want, tt.wantErr)
		})
	}
}

func storedIn(s *shelf) *auth.Stored { return auth.NewStored(s, slog.New(slog.DiscardHandler)) }

// The first key counts with the next request: an empty secret is no owner from then on.
func TestFirstKey(t *testing.T) {
	t.Parallel()
	s := &shelf{keys: map[string]core.APIKey{}}
	a := auth.New(auth.Options{Stored: storedIn(s)})
	for _, secret := range []string{"Bearer ", "Bearer none"} {
		check(t, a, ask{headers: header("Authorization", secret)}, core.Identity{Owner: core.LocalOwner, Rights: core.Everything}, nil)
	}
	s.set(core.NewSecret(), func(*core.APIKey) {})
	for _, secret := range []string{"Bearer ", "Bearer none"} {
		check(t, a, ask{headers: header("Authorization", secret)}, core.Identity{}, core.ErrUnauthorized)
	}
}

// TestLoopback proves the rules for a server without keys (API, auth.*).
func TestLoopback(t *testing.T) {
	t.Parallel()
	ok := map[string]ask{
		"ipv4":                     {},
		"ipv6":                     {remote: "[::1]:9", host: "[::1]:8080"},
		"ipv6 without port":        {host: "[::1]"},
		"mapped ipv4":              {remote: "[::ffff:127.0.0.1]:9"},
		"other loopback address":   {remote: "127.8.0.1:9", host: "127.8.0.1:8080"},
		"localhost without port":   {host: "LOCALHOST"},
		"own page":                 {host: "localhost:8080", headers: header("Origin", "http://localhost:8080")},
		"own page over tls":        {tls: true, headers: header("Origin", "https://localhost:8080")},
		"own page without origin":  {headers: header("Sec-Fetch-Site", "same-origin")},
		"typed into the browser":   {headers: header("Sec-Fetch-Site", "none")},
		"followed a link":          {headers: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}},
		"post of a local program":  {method: http.MethodPost},
		"own page by address":      {host: "127.0.0.1:1", headers: header("Origin", "http://127.0.0.1:1")},
		"own page, capital letter": {host: "localhost:1", headers: header("Origin", "http://LocalHost:1")},
	}
	for name, ask := range ok {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, auth.New(auth.Options{}), ask, core.Identity{Owner: core.LocalOwner, Rights: core.Everything}, nil)
		})
	}
	refused := map[string]ask{
		"from afar":                 {remote: "192.168.0.7:9"},
		"no address":                {remote: "@"},
		"foreign host":              {host: "evil.example:8080"},
		"host like localhost":       {host: "localhost.evil.example"},
		"address as a name":         {host: "127.0.0.1.nip.io"},
		"any address":               {host: "0.0.0.0:8080"},
		"bare ipv6":                 {host: "::1"},
		"bad port":                  {host: "localhost:http"},
		"foreign origin":            {headers: header("Origin", "https://evil.example")},
		"other local port":          {headers: header("Origin", "http://localhost:3000")},
		"other scheme":              {headers: header("Origin", "https://localhost:8080")},
		"opaque origin":             {headers: header("Origin", "null")},
		"empty origin":              {headers: header("Origin", "")},
		"origin with user":          {headers: header("Origin", "http://x@localhost:8080")},
		"image of a page":           {headers: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}},
		"form of a page":            {method: http.MethodPost, headers: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}},
		"page on another port":      {headers: map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}},
		"through nginx as it comes": {old: true, headers: header("Connection", "close")},
	}
	for name, ask := range refused {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, auth.New(auth.Options{}), ask, core.Identity{}, core.ErrForbidden)
		})
	}
}

// A proxy that shows itself in any way lets nobody in without a key.
func TestHeadersOfProxies(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "X-Cluster-Client-Ip", "X-Azure-ClientIP", "X-Azure-FDID", "Cdn-Loop", "X-Appengine-User-Ip",
		"X-Amzn-Trace-Id", "CF-Ray", "Fastly-Client-IP", "True-Client-IP", "X-Envoy-External-Address", "X-ARR-LOG-ID", "Fly-Client-IP", "X-Original-URL",
	} {
		check(t, auth.New(auth.Options{}), ask{headers: header(name, "203.0.113.9")}, core.Identity{}, core.ErrForbidden)
	}
	for _, name := range []string{"User-Agent", "Accept", "X-Request-Id", "Idempotency-Key", "Traceparent", "Content-Type"} {
		check(t, auth.New(auth.Options{}), ask{headers: header(name, "x")}, core.Identity{Owner: core.LocalOwner, Rights: core.Everything}, nil)
	}
}

// users are tokens and whom they speak for.
type users map[string]core.Identity

// The tokens of the tests.
const (
	good    = "eyJ.good.x"
	late    = "eyJ.late.x"
	keyless = "eyJ.keyless.x"
)

func (u users) Identify(_ context.Context, token string) (core.Identity, error) {
	switch who, ok := u[token]; {
	case token == late:
		return core.Identity{}, &core.Error{Kind: core.ErrUnauthorized, Code: core.CodeTokenExpired, Message: "late"}
	case token == keyless:
		return core.Identity{}, core.Errorf(core.ErrUnavailable, "no keys")
	case ok:
		return who, nil
	}
	return core.Identity{}, core.Errorf(core.ErrUnauthorized, "no")
}

// A token of three parts is an end user's, unless it is an API key that looks so; what
// has another form is none, and without the setting there are none at all.
func TestTokens(t *testing.T) {
	t.Parallel()
	eve := core.Identity{Owner: "shop", User: "eve", Rights: core.ReadWrite, Expires: time.Unix(5, 0)}
	const odd = "eyJ.key.x"
	keys := []auth.Key{auth.NewKey("ann", odd, core.ReadWrite)}
	a := auth.New(auth.Options{Keys: keys, VerifyToken: users{good: eve, odd: eve}.Identify})
	bearer := func(s string) map[string]string { return header("Authorization", "Bearer "+s) }
	for _, remote := range []string{"127.0.0.1:1", "203.0.113.9:4711"} {
		check(t, a, ask{remote: remote, host: "bobbin.example", headers: bearer(good)}, eve, nil)
	}
	check(t, a, ask{headers: bearer(odd)}, core.Identity{Owner: "ann", Key: "ann", Rights: core.ReadWrite}, nil)
	for _, secret := range []string{"eyJ.bad.x", late, "x" + good, good + ".x", "eyJgoodx"} {
		check(t, a, ask{headers: bearer(secret)}, core.Identity{}, core.ErrUnauthorized)
	}
	check(t, a, ask{headers: bearer(keyless)}, core.Identity{}, core.ErrUnavailable)
	check(t, auth.New(auth.Options{Keys: keys}), ask{headers: bearer(good)}, core.Identity{}, core.ErrUnauthorized)
	check(t, auth.New(auth.Options{Required: true}), ask{headers: bearer(good)}, core.Identity{}, core.ErrUnauthorized)
}

// Behind a proxy all users have one address: a stranger's guesses do not keep them out,
// with whatever new token they come, nor do tokens that have expired count as guesses.
func TestTokensBehindAProxy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		eve := core.Identity{Owner: "shop", User: "eve"}
		a := auth.New(auth.Options{Keys: []auth.Key{auth.NewKey("ann", "s3cret", core.ReadWrite)}, VerifyToken: users{good: eve}.Identify, GuessesPerMinute: 3})
		from := func(secret string) error {
			_, err := a.Authenticate(ask{remote: "203.0.113.9:1", headers: header("Authorization", "Bearer "+secret)}.request())
			return err
		}
		for range 10 {
			if err := from(late); !errors.Is(err, core.ErrUnauthorized) {
				t.Fatalf("got %v for a token that has expired, want that", err)
			}
		}
		for i := range 5 {
			want := core.ErrUnauthorized
			if i >= 3 {
				want = core.ErrRateLimited
			}
			compare.Error(t, fmt.Sprintf("guess %d", i), want, from("eyJ.bad.x"))
		}
		compare.Error(t, "for a wrong key after guesses by tokens: want it held up", core.ErrRateLimited, from("wrong"))
		compare.Error(t, "for a good token after guesses: want it let in", nil, from(good))
		compare.Error(t, "for a late token after guesses: want that it is late", core.ErrUnauthorized, from(late))
	})
}

// A request with several keys is refused: a proxy may have looked at another one.
func TestSeveralKeys(t *testing.T) {
	t.Parallel()
	a := auth.New(auth.Options{Keys: []auth.Key{auth.NewKey("ann", "s3cret", core.ReadWrite), auth.NewKey("bob", "other", core.ReadWrite)}})
	for _, headers := range []http.Header{
		{"Authorization": {"Bearer s3cret", "Bearer other"}},
		{"Authorization": {"Bearer s3cret"}, "X-Api-Key": {"other"}},
		{"X-Api-Key": {"s3cret", "other"}},
		{"Authorization": {"", "Bearer other"}},
	} {
		r := ask{}.request()
		r.Header = headers
		if who, err := a.Authenticate(r); !errors.Is(err, core.ErrUnauthorized) {
			t.Errorf("%v: got %+v, %v, want it refused", headers, who, err)
		}
	}
}

// An address with too many requests without a good key is held up until its time has
// passed. A good key is let in from there all the same, also one that was never seen.
func TestGuesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keys := []auth.Key{auth.NewKey("ann", "s3cret", core.ReadWrite), auth.NewKey("bob", "other", core.ReadWrite)}
		a := auth.New(auth.Options{Keys: keys, GuessesPerMinute: 3})
		from := func(remote, secret string) error {
			_, err := a.Authenticate(ask{remote: remote, headers: header("X-API-Key", secret)}.request())
			return err
		}
		const eve, home, neighbor = "203.0.113.9:1", "[2001:db8::1]:1", "[2001:db8::ffff]:2"
		for _, remote := range []string{eve, home} {
			for range 3 {
				if err := from(remote, "guess"); !errors.Is(err, core.ErrUnauthorized) {
					t.Fatalf("got %v for a guess, want that it is wrong", err)
				}
			}
		}
		var held *core.Error
		for _, remote := range []string{eve, "203.0.113.9:2", home, neighbor} {
			for _, secret := range []string{"guess", ""} {
				err := from(remote, secret)
				compare.True(t, errors.As(err, &held) && held.Code == auth.CodeFailedAttempts && held.RetryAfter > 0, "%s with %q: got %v, want to be held up", remote, secret, err)
			}
			for _, secret := range []string{"s3cret", "other"} {
				compare.Error(t, fmt.Sprintf("%s with the good key %s: want it let in", remote, secret), nil, from(remote, secret))
			}
		}
		for _, remote := range []string{"203.0.113.10:1", "[2001:db8:0:1::1]:1"} {
			compare.Error(t, remote+": want only that it is wrong", core.ErrUnauthorized, from(remote, "guess"))
		}
		check(t, a, ask{}, core.Identity{Owner: core.LocalOwner, Rights: core.Everything}, nil)
		time.Sleep(held.RetryAfter)
		compare.Error(t, "after the time that was told: want only that it is wrong", core.ErrUnauthorized, from(eve, "guess"))
	})
}

// Behind a trusted proxy those are held up who guess, by the address that the proxy saw;
// whoever writes addresses into the header themselves gains nothing, and behind no proxy
// the header is nothing.
func TestGuessesBehindAProxy(t *testing.T) {
	t.Parallel()
	const proxy = "10.0.0.7:1"
	for name, tt := range map[string]struct {
		remote         string
		guesser, other []string // X-Forwarded-For
		held           bool     // the other is held up, too
	}{
		"two visitors":              {proxy, []string{"203.0.113.9"}, []string{"203.0.113.10"}, false},
		"one visitor":               {proxy, []string{"203.0.113.9"}, []string{"203.0.113.9:4711"}, true},
		"one that writes addresses": {proxy, []string{"1.1.1.1, 203.0.113.9"}, []string{"2.2.2.2", "203.0.113.9"}, true},
		"behind two proxies":        {proxy, []string{"203.0.113.9, 10.1.1.1"}, []string{"203.0.113.10", "10.2.2.2"}, false},
		"one of a household":        {proxy, []string{"2001:db8::1"}, []string{"[2001:db8::2]:5"}, true},
		"no address":                {proxy, []string{"unknown"}, []string{"203.0.113.10, _hidden"}, true},
		"no header":                 {proxy, nil, []string{""}, true},
		"no proxy of ours":          {"192.0.2.1:1", []string{"203.0.113.9"}, []string{"203.0.113.10"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := auth.New(auth.Options{Keys: []auth.Key{auth.NewKey("ann", "s3cret", core.ReadWrite)}, GuessesPerMinute: 2, Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
			from := func(secret string, forwarded []string) error {
				r := ask{remote: tt.remote, headers: header("X-API-Key", secret)}.request()
				for _, value := range forwarded {
					r.Header.Add("X-Forwarded-For", value)
				}
				_, err := a.Authenticate(r)
				return err
			}
			for range 2 {
				if err := from("guess", tt.guesser); !errors.Is(err, core.ErrUnauthorized) {
					t.Fatalf("got %v for a guess, want that it is wrong", err)
				}
			}
			compare.Error(t, "for who guessed: want them held up", core.ErrRateLimited, from("guess", tt.guesser))
			compare.Equal(t, "the other is held up", tt.held, errors.Is(from("guess", tt.other), core.ErrRateLimited))
			compare.Error(t, "for a good key: want it let in", nil, from("s3cret", tt.other))
		})
	}
}
