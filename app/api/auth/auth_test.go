package auth_test

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"bobbin/app/api/auth"
	"bobbin/app/core"
	"bobbin/tests/compare"
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
	if !errors.Is(err, wantErr) {
		t.Fatalf("got error %v, want %v", err, wantErr)
	}
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
