package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"

	"bobbin/app/core"
)

// Options configure an Authenticator.
type Options struct {
	Keys     []Key   // of the configuration
	Stored   *Stored // those of the database; nil = there are none
	Required bool    // requests without a key are refused, from this machine too
	// LocalToken lets the command line on this machine in as core.LocalOwner;
	// empty = no such token.
	LocalToken string
	// GuessesPerMinute bounds the requests without a good key from one address; 0 = no
	// limit.
	GuessesPerMinute int
}

// Authenticator finds out who makes a request. Safe for concurrent use.
type Authenticator struct {
	keys     []Key
	stored   *Stored
	required bool
	token    *Key
	guesses  *guesses
}

// New returns an authenticator.
func New(opts Options) *Authenticator {
	a := &Authenticator{keys: opts.Keys, stored: opts.Stored, required: opts.Required, guesses: newGuesses(opts.GuessesPerMinute)}
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

// secretOf returns the secret that the request carries, "" without one.
func secretOf(r *http.Request) (string, error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return strings.TrimSpace(r.Header.Get("X-API-Key")), nil
	}
	scheme, secret, _ := strings.Cut(header, " ")
	secret = strings.TrimSpace(secret)
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return "", unauthorized("the Authorization header must be: Bearer, a space, and an API key")
	}
	return secret, nil
}

// bySecret compares with every key, so that the time it takes does not tell
// which one was met.
func (a *Authenticator) bySecret(r *http.Request, secret string) (core.Identity, error) {
	sum := sha256.Sum256([]byte(secret))
	var found *Key
	for i := range a.keys {
		if a.keys[i].matches(sum) {
			found = &a.keys[i]
		}
	}
	if found != nil {
		return found.identity(), nil
	}
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
	case isForwarded(r.Header):
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
