package auth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"bobbin/app/api/auth"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/jwttest"
	"bobbin/tests/must"
)

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
