package auth_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
