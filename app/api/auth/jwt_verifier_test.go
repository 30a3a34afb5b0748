package auth_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"bobbin/app/api/auth"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/jwttest"
	"bobbin/tests/must"
)

// validOptions are options for the tokens of jwttest.Claims.
func validOptions() auth.VerifierOptions {
	return auth.VerifierOptions{Issuer: jwttest.Issuer, Audience: jwttest.Audience, Owner: "shop", UserClaim: "sub", Rights: core.ReadWrite, Leeway: 30 * time.Second, MaxLife: time.Hour}
}

// fromFile returns keys of a file with the JWKS, fetched once.
func fromFile(t *testing.T, jwks []byte) *auth.Keys {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jwks.json")
	must.Do(t, os.WriteFile(path, jwks, 0o600))
	keys := auth.NewKeys(auth.KeyOptions{File: path, Logger: slog.New(slog.DiscardHandler)})
	must.Do(t, keys.Load(t.Context()))
	return keys
}

// wantRefused checks that a token is refused with the code, in words of which none is
// of the token.
func wantRefused(t *testing.T, v *auth.Verifier, token, code, words string) {
	t.Helper()
	who, err := v.Identify(context.Background(), token)
	var told *core.Error
	if !errors.As(err, &told) || !errors.Is(err, core.ErrUnauthorized) || told.Code != code || !strings.Contains(told.Message, words) {
		t.Fatalf("got %+v and %v, want it refused: %s … %s", who, err, code, words)
	}
	compare.Equal(t, "identity of a refused token", (core.Identity{}), who)
	for part := range strings.SplitSeq(token, ".") {
		compare.True(t, len(part) <= 8 || !strings.Contains(told.Message, part), "the error %q has a part of the token", told.Message)
	}
}

// Every accepted algorithm, by keys with and without alg: the token identifies the user.
func TestAlgorithms(t *testing.T) {
	t.Parallel()
	for _, alg := range []string{"RS256", "RS384", "RS512", "PS256", "ES256", "EdDSA"} {
		t.Run(alg, func(t *testing.T) {
			t.Parallel()
			s := jwttest.NewSigner(t, "k-"+alg, alg)
			bare := s.Public()
			bare.Algorithm, bare.Use = "", ""
			data := must.Get(json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{bare}}))(t)
			for _, jwks := range [][]byte{jwttest.JWKS(t, s), data} {
				v := auth.NewVerifier(fromFile(t, jwks), validOptions())
				claims := jwttest.Claims("ada", nil)
				who, err := v.Identify(t.Context(), s.Token(t, claims, nil))
				want := core.Identity{Owner: "shop", User: "ada", Rights: core.ReadWrite, Expires: time.Unix(claims["exp"].(int64), 0).Add(30 * time.Second).UTC()}
				if diff := cmp.Diff(want, who); err != nil || diff != "" {
					t.Errorf("got %v, identity (-want +got):\n%s", err, diff)
				}
				token := s.User(t, "ada")
				wantRefused(t, v, token[:len(token)-12]+"AAAAAAAAAAAA", auth.CodeInvalid, "signature")
			}
		})
	}
}

// Nobody gets in by telling us how to check: no algorithm, a shared secret that is the
// public key, the key's wrong algorithm, another curve, a key that the token brings
// along, and encrypted tokens (RFC 8725).
func TestConfusion(t *testing.T) {
	t.Parallel()
	rs, es, ed := jwttest.NewSigner(t, "rs", "RS256"), jwttest.NewSigner(t, "es", "ES256"), jwttest.NewSigner(t, "ed", "EdDSA")
	eve := jwttest.NewSigner(t, "es", "ES256")
	v := auth.NewVerifier(fromFile(t, jwttest.JWKS(t, rs, es, ed)), validOptions())
	claims := jwttest.Claims("ada", nil)
	part := func(x any) string {
		data := must.Get(json.Marshal(x))(t)
		return base64.RawURLEncoding.EncodeToString(data)
	}
	good := rs.Token(t, claims, nil)
	body, signature := strings.Split(good, ".")[1], strings.Split(good, ".")[2]
	der := must.Get(x509.MarshalPKIXPublicKey(rs.Public().Key))(t)
	jwk := must.Get(rs.Public().MarshalJSON())(t)
	for name, secret := range map[string][]byte{"pem": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "der": der, "jwk": jwk} {
		forged := jwttest.Sign(t, jose.SigningKey{Algorithm: jose.HS256, Key: bytes.Repeat(secret, 2)[:max(32, len(secret))]}, "rs", claims, nil)
		t.Run("HS256 with the public key as "+name, func(t *testing.T) {
			t.Parallel()
			wantRefused(t, v, forged, auth.CodeInvalid, "algorithm")
		})
	}
	for name, tt := range map[string]struct{ token, words string }{
		"none":                      {part(map[string]any{"alg": "none", "kid": "rs"}) + "." + body + ".", "algorithm"},
		"None, with a signature":    {part(map[string]any{"alg": "nOnE", "kid": "rs"}) + "." + body + "." + signature, "algorithm"},
		"no algorithm":              {part(map[string]any{"kid": "rs"}) + "." + body + "." + signature, "algorithm"},
		"stripped signature":        {strings.TrimSuffix(good, signature), "signature"},
		"other claims":              {part(map[string]any{"alg": "RS256", "kid": "rs"}) + "." + part(jwttest.Claims("eve", nil)) + "." + signature, "signature"},
		"another algorithm of RSA":  {jwttest.Sign(t, jose.SigningKey{Algorithm: jose.PS256, Key: rs.Private()}, "rs", claims, nil), "does not match its key"},
		"ES256 with a key of RSA":   {jwttest.Sign(t, jose.SigningKey{Algorithm: jose.ES256, Key: eve.Private()}, "rs", claims, nil), "does not match its key"},
		"EdDSA with a key of ES256": {jwttest.Sign(t, jose.SigningKey{Algorithm: jose.EdDSA, Key: ed.Private()}, "es", claims, nil), "does not match its key"},
		"ES384":                     {jwttest.NewSigner(t, "es", "ES384").User(t, "ada"), "algorithm"},
		"somebody else's key":       {eve.User(t, "ada"), "signature"},
		"unknown kid":               {jwttest.NewSigner(t, "../../etc/passwd", "ES256").User(t, "ada"), "unknown key"},
		"a kid of a statement":      {jwttest.NewSigner(t, "' OR 1=1 --", "ES256").User(t, "ada"), "unknown key"},
		"its own key": {jwttest.Sign(t, jose.SigningKey{Algorithm: jose.ES256, Key: eve.Private()}, "", claims,
			map[jose.HeaderKey]any{"jwk": eve.Public(), "jku": "http://127.0.0.1:1/keys", "x5u": "http://127.0.0.1:1/cert"}), "signature"},
		"its own key, under a known id": {jwttest.Sign(t, jose.SigningKey{Algorithm: jose.ES256, Key: eve.Private()}, "es", claims,
			map[jose.HeaderKey]any{"jwk": eve.Public()}), "signature"},
		"encrypted":      {part(map[string]any{"alg": "RSA-OAEP", "enc": "A256GCM"}) + ".a.b.c.d", "not a valid signed token"},
		"nested JSON":    {`{"payload":"` + body + `","signatures":[{"protected":"e30","signature":"` + signature + `"}]}`, "not a valid signed token"},
		"an extension":   {rs.Token(t, claims, map[jose.HeaderKey]any{"crit": []string{"exp"}}), "extension"},
		"b64 without it": {rs.Token(t, claims, map[jose.HeaderKey]any{"b64": false}), "extension"},
		"a logout token": {rs.Token(t, claims, map[jose.HeaderKey]any{"typ": "logout+jwt"}), "type"},
		"a typ of 5":     {rs.Token(t, claims, map[jose.HeaderKey]any{"typ": 5}), "type"},
		"too long":       {rs.Token(t, jwttest.Claims("ada", map[string]any{"x": strings.Repeat("x", 8<<10)}), nil), "too long"},
		"no token":       {"a.b.c", "not a valid signed token"},
		"not an object":  {jwttest.Sign(t, jose.SigningKey{Algorithm: jose.ES256, Key: es.Private()}, "es", []string{"ada"}, nil), "claims"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRefused(t, v, tt.token, auth.CodeInvalid, tt.words)
		})
	}
	for _, typ := range []any{"JWT", "jwt", "at+jwt", "application/at+JWT"} {
		if _, err := v.Identify(t.Context(), rs.Token(t, claims, map[jose.HeaderKey]any{"typ": typ})); err != nil {
			t.Errorf("typ %v: got %v, want it taken", typ, err)
		}
	}
}

// Without a kid the one key for the algorithm counts; among several there is no guessing.
func TestWithoutKeyID(t *testing.T) {
	t.Parallel()
	es, ed, other := jwttest.NewSigner(t, "", "ES256"), jwttest.NewSigner(t, "ed", "EdDSA"), jwttest.NewSigner(t, "", "ES256")
	if _, err := auth.NewVerifier(fromFile(t, jwttest.JWKS(t, es, ed)), validOptions()).Identify(t.Context(), es.User(t, "ada")); err != nil {
		t.Errorf("got %v with one key for it, want it taken", err)
	}
	wantRefused(t, auth.NewVerifier(fromFile(t, jwttest.JWKS(t, es, other)), validOptions()), es.User(t, "ada"), auth.CodeInvalid, "several")
	wantRefused(t, auth.NewVerifier(fromFile(t, jwttest.JWKS(t, ed)), validOptions()), es.User(t, "ada"), auth.CodeInvalid, "unknown key")
}

// What a token says decides whether it is taken: for whom, by whom, and when, with the
// leeway at each edge.
func TestClaims(t *testing.T) {
	t.Parallel()
	s := jwttest.NewSigner(t, "k", "EdDSA")
	v := auth.NewVerifier(fromFile(t, jwttest.JWKS(t, s)), validOptions())
	in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	for name, tt := range map[string]struct {
		changes     map[string]any
		code, words string // empty = it is taken
	}{
		"several audiences":      {map[string]any{"aud": []string{"other", jwttest.Audience}}, "", ""},
		"expired, within leeway": {map[string]any{"exp": in(-20 * time.Second)}, "", ""},
		"expired":                {map[string]any{"exp": in(-32 * time.Second)}, core.CodeTokenExpired, "expired"},
		"expired long ago":       {map[string]any{"exp": 1, "iat": 0}, core.CodeTokenExpired, "expired"},
		"not yet, within leeway": {map[string]any{"nbf": in(20 * time.Second)}, "", ""},
		"not yet":                {map[string]any{"nbf": in(40 * time.Second)}, auth.CodeInvalid, "nbf"},
		"from the future":        {map[string]any{"iat": in(40 * time.Second)}, auth.CodeInvalid, "iat"},
		"without iat":            {map[string]any{"iat": nil}, "", ""},
		"half seconds":           {map[string]any{"exp": float64(in(time.Minute)) + 0.5}, "", ""},
		"never expires":          {map[string]any{"exp": nil}, auth.CodeInvalid, "(exp)"},
		"expires as text":        {map[string]any{"exp": "tomorrow"}, auth.CodeInvalid, "claims"},
		"expires after all time": {map[string]any{"exp": 1e18}, auth.CodeInvalid, "out of range"},
		"made before all time":   {map[string]any{"iat": -1}, auth.CodeInvalid, "auth.jwt.max_life"},
		"too long":               {map[string]any{"exp": in(2 * time.Hour)}, auth.CodeInvalid, "auth.jwt.max_life"},
		"too long, without iat":  {map[string]any{"exp": in(2 * time.Hour), "iat": nil}, auth.CodeInvalid, "auth.jwt.max_life"},
		"another issuer":         {map[string]any{"iss": "https://login.example/"}, auth.CodeInvalid, "issuer"},
		"no issuer":              {map[string]any{"iss": nil}, auth.CodeInvalid, "issuer"},
		"another audience":       {map[string]any{"aud": "bobbin2"}, auth.CodeInvalid, "audience"},
		"no audience":            {map[string]any{"aud": nil}, auth.CodeInvalid, "audience"},
		"no user":                {map[string]any{"sub": nil}, auth.CodeInvalid, "user"},
		"an empty user":          {map[string]any{"sub": ""}, auth.CodeInvalid, "user"},
		"a blank user":           {map[string]any{"sub": " ada"}, auth.CodeInvalid, "user"},
		"a user of several":      {map[string]any{"sub": []string{"ada"}}, auth.CodeInvalid, "claims"},
		"a long user":            {map[string]any{"sub": strings.Repeat("a", 201)}, auth.CodeInvalid, "user"},
		"a user with a break":    {map[string]any{"sub": "ada\nbob"}, auth.CodeInvalid, "user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			token := s.Token(t, jwttest.Claims("ada", tt.changes), nil)
			if tt.code != "" {
				wantRefused(t, v, token, tt.code, tt.words)
				return
			}
			compare.Equal(t, "who.User: want ada let in", "ada", must.Get(v.Identify(t.Context(), token))(t).User)
		})
	}
	twice := jwttest.Sign(t, jose.SigningKey{Algorithm: jose.EdDSA, Key: s.Private()}, "k",
		json.RawMessage(`{"iss":"`+jwttest.Issuer+`","aud":"bobbin","sub":"ada","sub":"eve","exp":9999999999}`), nil)
	wantRefused(t, v, twice, auth.CodeInvalid, "claims")
}

// Owner, user and scopes come from the claims that the settings name, and are never
// more than the settings say.
func TestMapping(t *testing.T) {
	t.Parallel()
	s := jwttest.NewSigner(t, "k", "EdDSA")
	keys := fromFile(t, jwttest.JWKS(t, s))
	o := validOptions()
	o.Owner, o.OwnerClaim, o.UserClaim, o.ScopeClaim, o.MaxLife = "", "https://shop.example/tenant", "email", "scope", 0
	base := map[string]any{o.OwnerClaim: "acme", "email": "ada@example.com", "scope": "openid read bobbin:write metrics", "exp": time.Now().Add(1000 * time.Hour).Unix()}
	for name, tt := range map[string]struct {
		changes map[string]any
		rights  core.Scopes // what the token may do
		words   string      // of the error; empty = it is taken
	}{
		"all":                   {nil, core.ReadWrite, ""},
		"scopes as a list":      {map[string]any{"scope": []any{"read", 5, "x"}}, core.CanRead, ""},
		"no scopes":             {map[string]any{"scope": nil}, 0, ""},
		"metrics are no user's": {map[string]any{"scope": "metrics"}, 0, ""},
		"no owner":              {map[string]any{o.OwnerClaim: nil}, 0, "owner"},
		"an owner with a slash": {map[string]any{o.OwnerClaim: "a/b"}, 0, "owner"},
		"this machine's user":   {map[string]any{o.OwnerClaim: core.LocalOwner}, 0, "owner"},
		"a user by sub only":    {map[string]any{"email": nil}, 0, "user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claims := maps.Clone(base)
			maps.Copy(claims, tt.changes)
			token := s.Token(t, jwttest.Claims("id-1", claims), nil)
			if tt.words != "" {
				wantRefused(t, auth.NewVerifier(keys, o), token, auth.CodeInvalid, tt.words)
				return
			}
			who := must.Get(auth.NewVerifier(keys, o).Identify(t.Context(), token))(t)
			compare.Equal(t, "owner, user, rights", []any{"acme", "ada@example.com", tt.rights}, []any{who.Owner, who.User, who.Rights})
			reader := o
			reader.Rights = core.CanRead
			compare.Equal(t, "who.Rights&core.CanWrite: want no more than the settings allow", 0, must.Get(auth.NewVerifier(keys, reader).Identify(t.Context(), token))(t).Rights&core.CanWrite)
		})
	}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// taken reports whether the token is taken, and fails for other errors than that it is
// not.
func taken(t *testing.T, v *auth.Verifier, token string) bool {
	t.Helper()
	_, err := v.Identify(t.Context(), token)
	if err != nil && !errors.Is(err, core.ErrUnauthorized) && !errors.Is(err, core.ErrUnavailable) {
		t.Fatal(err)
	}
	return err == nil
}

// A signer that changes its keys is believed at once: a token with the new key has it
// fetched. Tokens with made up keys do not have us fetch more than now and then, and
// known keys no more at all.
func TestRotation(t *testing.T) {
	t.Parallel()
	first, second, eve := jwttest.NewSigner(t, "1", "ES256"), jwttest.NewSigner(t, "2", "EdDSA"), jwttest.NewSigner(t, "made up", "ES256")
	server := jwttest.Serve(t, first)
	v := auth.NewVerifier(auth.NewKeys(auth.KeyOptions{URL: server.URL, Logger: discard()}), validOptions())
	for range 5 {
		must.True(t, taken(t, v, first.User(t, "ada")), "the first key is not taken")
	}
	compare.Equal(t, "fetches for one key", 1, server.Fetches())
	server.Set(jwttest.JWKS(t, first, second))
	compare.True(t, taken(t, v, second.User(t, "ada")) && taken(t, v, first.User(t, "ada")), "after a rotation: the new key or the old one is not taken")
	server.Set(jwttest.JWKS(t, second))
	for i := range 50 {
		if taken(t, v, jwttest.NewSigner(t, fmt.Sprint("guess ", i), "EdDSA").User(t, "ada")) || taken(t, v, eve.User(t, "ada")) {
			t.Fatal("a key that nobody has published is taken")
		}
	}
	n := server.Fetches()
	compare.True(t, n <= 4, "got %d fetches, want no more than the few at once: strangers make us fetch", n)
	compare.True(t, !taken(t, v, first.User(t, "ada")), "a key that was withdrawn is taken after the fetch")
}

// However many ask at once, there is one fetch, and all get its keys.
func TestOneFetchForAll(t *testing.T) {
	t.Parallel()
	s := jwttest.NewSigner(t, "1", "EdDSA")
	server := jwttest.Serve(t, s)
	begun, answer := make(chan struct{}, 10), make(chan struct{})
	server.Do(func(w http.ResponseWriter, _ *http.Request) {
		begun <- struct{}{}
		<-answer
		_, _ = w.Write(jwttest.JWKS(t, s))
	})
	v := auth.NewVerifier(auth.NewKeys(auth.KeyOptions{URL: server.URL, Logger: discard()}), validOptions())
	var all sync.WaitGroup
	errs := make(chan error, 20)
	ask := func(ctx context.Context) {
		all.Go(func() {
			_, err := v.Identify(ctx, s.User(t, "ada"))
			errs <- err
		})
	}
	first, leave := context.WithCancel(t.Context())
	ask(first)
	<-begun
	leave() // the one whose request began it
	for range 15 {
		ask(t.Context())
	}
	close(answer)
	all.Wait()
	close(errs)
	for err := range errs {
		compare.Error(t, "err: want all let in", nil, err)
	}
	compare.Equal(t, "fetches", 1, server.Fetches())
}

// A server that fails in whatever way leaves the keys of before, and opens nothing
// where there are none; the errors say what is wrong.
func TestBadServers(t *testing.T) {
	t.Parallel()
	s := jwttest.NewSigner(t, "1", "EdDSA")
	private := must.Get(jose.JSONWebKey{Key: s.Private(), KeyID: "1"}.MarshalJSON())(t)
	write := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
	}
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		words  string
		empty  bool // it is good, and has no keys
	}{
		"down":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "status 500", false},
		"breaks off": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF", false},
		"a page":     {write("<html>sign in</html>"), "not a JWKS", false},
		"null":       {write("null"), "not a JWKS", false},
		"no list":    {write(`{"keys":{}}`), "not a JWKS", false},
		"huge":       {write(`{"keys":[],"x":"` + strings.Repeat("x", 1<<20) + `"}`), "larger than 512 KiB", false},
		"many keys":  {write(`{"keys":[` + strings.TrimSuffix(strings.Repeat("{},", 101), ",") + `]}`), "more than 100", false},
		"sends on": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/meta", http.StatusFound)
		}, "redirects to 169.254.169.254", false},
		"empty":         {write(`{"keys":[]}`), "empty", true},
		"shared secret": {write(`{"keys":[{"kty":"oct","kid":"1"}]}`), "it is a shared secret; only", true},
		"private key":   {write(`{"keys":[` + string(private) + `]}`), "it is a private key, which is now exposed", true},
		"for encryption": {func(w http.ResponseWriter, _ *http.Request) {
			k := s.Public()
			k.Use = "enc"
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{k}})
		}, "not for signatures", true},
		"short RSA": {write(`{"keys":[{"kty":"RSA","kid":"1","e":"AQAB","n":"` + strings.Repeat("_", 171) + `"}]}`), "too short", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := jwttest.Serve(t, s)
			keys := auth.NewKeys(auth.KeyOptions{URL: server.URL + "?secret=hush", Logger: discard()})
			server.Do(tt.answer)
			v := auth.NewVerifier(keys, validOptions())
			_, err := v.Identify(t.Context(), s.User(t, "ada"))
			compare.Error(t, "before there were keys", map[bool]error{true: core.ErrUnauthorized, false: core.ErrUnavailable}[tt.empty], err)
			server.Set(jwttest.JWKS(t, s))
			if err := keys.Load(t.Context()); err != nil || !taken(t, v, s.User(t, "ada")) {
				t.Fatalf("got %v from a good server", err)
			}
			server.Do(tt.answer)
			err = keys.Load(t.Context())
			compare.True(t, err != nil && strings.Contains(err.Error(), tt.words) && !strings.Contains(err.Error(), "hush"), "got %v, want %q in it and no part of the address", err, tt.words)
			compare.True(t, taken(t, v, s.User(t, "ada")) != tt.empty, "a server that fails took the keys away, or one that withdrew them did not")
		})
	}
}

// A server that hangs holds up nobody whose key is known, and others for a time.
func TestHangingServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := jwttest.NewSigner(t, "1", "EdDSA")
		jwks, hangs := jwttest.JWKS(t, s), false
		keys := auth.KeysFrom(func(ctx context.Context) ([]byte, error) {
			if hangs {
				<-ctx.Done()
			}
			return jwks, ctx.Err()
		}, 0, discard())
		v := auth.NewVerifier(keys, validOptions())
		must.True(t, taken(t, v, s.User(t, "ada")), "not taken while the server answers")
		hangs = true
		begin := time.Now()
		compare.True(t, !taken(t, v, jwttest.NewSigner(t, "2", "EdDSA").User(t, "ada")), "a key that nobody has is taken")
		compare.Equal(t, "a stranger was held for: want the 5s of a fetch", 5*time.Second, time.Since(begin))
		begin = time.Now()
		compare.Equal(t, "a known key is taken at once", []any{true, time.Duration(0)}, []any{taken(t, v, s.User(t, "ada")), time.Since(begin)})
	})
}

// Run fetches at once, soon again after a failure and less often after several, and
// from then on at every interval; the log says what is wrong.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := jwttest.NewSigner(t, "1", "EdDSA")
		var lines bytes.Buffer
		var seconds []int
		jwks, begin := jwttest.JWKS(t, s), time.Now()
		keys := auth.KeysFrom(func(context.Context) ([]byte, error) {
			if seconds = append(seconds, int(time.Since(begin).Seconds())); time.Since(begin) < time.Minute {
				return nil, errors.New("no network")
			}
			return jwks, nil
		}, time.Hour, slog.New(slog.NewTextHandler(&lines, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- keys.Run(ctx) }()
		time.Sleep(5*time.Hour + time.Minute)
		cancel()
		must.Do(t, <-ended)
		compare.Equal(t, "seconds at which keys are fetched", "[0 5 15 35 75 3675 7275 10875 14475]", fmt.Sprint(seconds))
		if n := strings.Count(lines.String(), "keys for tokens not fetched"); n != 4 || !strings.Contains(lines.String(), "no network") {
			t.Errorf("got %d warnings, want one for each failure, with its reason:\n%s", n, &lines)
		}
		compare.True(t, taken(t, auth.NewVerifier(keys, validOptions()), s.User(t, "ada")), "the keys that were fetched are not taken")
	})
}

// Keys in a file are read again when a token has one that is not known.
func TestFile(t *testing.T) {
	t.Parallel()
	first, second := jwttest.NewSigner(t, "1", "ES256"), jwttest.NewSigner(t, "2", "EdDSA")
	path := filepath.Join(t.TempDir(), "jwks.json")
	keys := auth.NewKeys(auth.KeyOptions{File: path, Logger: discard()})
	compare.Error(t, "for a file that is not there", os.ErrNotExist, keys.Load(t.Context()))
	v := auth.NewVerifier(keys, validOptions())
	for _, signers := range [][]*jwttest.Signer{{first}, {first, second}} {
		must.Do(t, os.WriteFile(path, jwttest.JWKS(t, signers...), 0o600))
		for _, s := range signers {
			compare.True(t, taken(t, v, s.User(t, "ada")), "key %s of the file is not taken", s.ID)
		}
	}
	usable, skipped := keys.About()
	compare.Equal(t, "fmt.Sprint(usable, skipped)", `["1" (ES256) "2" (EdDSA)] []`, fmt.Sprint(usable, skipped))
}
