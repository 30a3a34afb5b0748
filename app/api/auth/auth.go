package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/netip"
	"strings"

	"bobbin/app/core"
)

// tokens say for whom signed tokens speak (jwt.Verifier).
type tokens interface {
	Identify(ctx context.Context, token string) (core.Identity, error)
}

// Options configure an Authenticator.
type Options struct {
	Keys     []Key   // of the configuration
	Stored   *Stored // those of the database; nil = there are none
	Tokens   tokens  // of end users; nil = there are none
	Required bool    // requests without a key are refused, from this machine too
	// LocalToken lets the command line on this machine in as core.LocalOwner;
	// empty = no such token.
	LocalToken string
	// GuessesPerMinute bounds the requests without a good key from one address; 0 = no
	// limit.
	GuessesPerMinute int
	// Proxies are those whose X-Forwarded-For says from which address.
	Proxies []netip.Prefix
}

// Authenticator finds out who makes a request. Safe for concurrent use.
type Authenticator struct {
	keys     []Key
	stored   *Stored
	tokens   tokens
	required bool
	token    *Key
	guesses  *guesses
}

// New returns an authenticator.
func New(opts Options) *Authenticator {
	a := &Authenticator{keys: opts.Keys, stored: opts.Stored, tokens: opts.Tokens, required: opts.Required, guesses: newGuesses(opts.GuessesPerMinute, opts.Proxies)}
	if opts.LocalToken != "" {
		token := NewKey(core.LocalOwner, opts.LocalToken, core.Everything)
		a.token = &token
	}
	return a
}

// Authenticate returns who makes the request. Errors are core.ErrUnauthorized
// (a key is needed, or the one sent is not known), core.ErrForbidden (the request breaks
// the rules for requests without a key) and core.ErrRateLimited (too many requests
// without a good key came from the address).
func (a *Authenticator) Authenticate(r *http.Request) (core.Identity, error) {
	secret, err := secretOf(r)
	if err == nil && a.isToken(secret) {
		return a.byToken(r, secret)
	}
	if err == nil && secret == "" && !a.required && a.checkLocal(r) == nil {
		return core.Identity{Owner: core.LocalOwner, Rights: core.Everything}, nil
	}
	if held := a.guesses.check(r, secret); held != nil {
		return core.Identity{}, held
	}
	var who core.Identity
	switch {
	case err != nil:
	case secret != "":
		who, err = a.bySecret(r, secret)
	case a.required:
		err = unauthorized("send an API key, as Authorization: Bearer … or X-API-Key")
	default:
		err = a.checkLocal(r)
	}
	if err == nil || errors.Is(err, core.ErrUnauthorized) || errors.Is(err, core.ErrForbidden) {
		a.guesses.result(r, secret, err == nil)
	}
	return who, err
}

// Lapsed returns which of the keys of the database open nothing any more, and why: for
// requests that are held for long.
func (a *Authenticator) Lapsed(ctx context.Context, ids []core.KeyID) (map[core.KeyID]error, error) {
	if a.stored == nil {
		return nil, nil
	}
	return a.stored.lapsed(ctx, ids)
}

// secretOf returns the secret that the request carries, "" without one. Of several a
// proxy in front of us could have looked at another one than we do.
func secretOf(r *http.Request) (string, error) {
	header := r.Header.Get("Authorization")
	if len(r.Header.Values("Authorization"))+len(r.Header.Values("X-API-Key")) > 1 {
		return "", unauthorized("send one key, in one header: Authorization or X-API-Key")
	}
	if header == "" {
		return strings.TrimSpace(r.Header.Get("X-API-Key")), nil
	}
	scheme, secret, _ := strings.Cut(header, " ")
	secret = strings.TrimSpace(secret)
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return "", unauthorized("the Authorization header must be: Bearer, a space, and a key")
	}
	return secret, nil
}

// isToken reports whether the secret is a signed token: three parts, of which the first
// is a JSON object in base64. An API key of the configuration may look so, too.
func (a *Authenticator) isToken(secret string) bool {
	if a.tokens == nil || !strings.HasPrefix(secret, "e") || strings.Count(secret, ".") != 2 {
		return false
	}
	_, known := a.configured(secret)
	return !known
}

// byToken returns the end user of a token. Nobody can guess a signature, so that a
// good token is let in from everywhere: behind a proxy all users have one address. One
// that has expired is nobody's guess; all others count as such.
func (a *Authenticator) byToken(r *http.Request, token string) (core.Identity, error) {
	who, err := a.tokens.Identify(r.Context(), token)
	var told *core.Error
	if err == nil || !errors.As(err, &told) || !errors.Is(err, core.ErrUnauthorized) || told.Code == core.CodeTokenExpired {
		return who, err
	}
	if held := a.guesses.check(r, ""); held != nil {
		return core.Identity{}, held
	}
	a.guesses.result(r, "", false)
	return core.Identity{}, err
}

// configured returns whose key of the configuration it is. It compares with every key,
// so that the time it takes does not tell which one was met.
func (a *Authenticator) configured(secret string) (core.Identity, bool) {
	sum := sha256.Sum256([]byte(secret))
	var found *Key
	for i := range a.keys {
		if a.keys[i].matches(sum) {
			found = &a.keys[i]
		}
	}
	if found == nil {
		return core.Identity{}, false
	}
	return found.identity(), true
}

// bySecret returns whose API key it is.
func (a *Authenticator) bySecret(r *http.Request, secret string) (core.Identity, error) {
	if who, known := a.configured(secret); known {
		return who, nil
	}
	sum := sha256.Sum256([]byte(secret))
	// The token is for programs on this machine: elsewhere it is worth nothing.
	if a.token != nil && a.token.matches(sum) && isLoopback(r.RemoteAddr) {
		return core.Identity{Owner: core.LocalOwner, Operator: true, Rights: core.Everything}, nil
	}
	if a.stored == nil {
		return core.Identity{}, unknown()
	}
	key, err := a.stored.find(r.Context(), secret)
	if err != nil {
		return core.Identity{}, err
	}
	return core.Identity{Owner: key.Owner, Key: key.Name, KeyID: key.ID, Rights: key.Rights}, nil
}

// checkLocal checks the rules for a request without a key.
func (a *Authenticator) checkLocal(r *http.Request) error {
	switch {
	case !isLoopback(r.RemoteAddr) && (len(a.keys) > 0 || a.stored != nil):
		return unauthorized("send an API key, as Authorization: Bearer … or X-API-Key")
	case !isLoopback(r.RemoteAddr):
		return forbidden("no API keys are configured, so only this machine may ask; set auth.keys to let others in")
	case !isLocalHost(r.Host):
		return forbidden("without an API key the Host must be localhost or a loopback address")
	case isForwarded(r):
		return forbidden("without an API key a request may not come through a proxy; make one with: bobbin keys create <name>")
	case isForeignPage(r):
		return forbidden("a web page of another origin may not ask without an API key")
	default:
		return nil
	}
}

// unknown is the error for a secret that opens nothing. It holds nothing of it.
func unknown() error { return unauthorized("this API key is not known") }

func unauthorized(message string) error { return core.Errorf(core.ErrUnauthorized, "%s", message) }
func forbidden(message string) error    { return core.Errorf(core.ErrForbidden, "%s", message) }
