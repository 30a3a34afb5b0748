package core

import (
	"context"
	"time"
)

// LocalOwner owns everything when no API keys are configured.
const LocalOwner = "local"

// Tenant says whose rows a repository method may touch. Every method that takes
// an id from outside takes a Scope too, so that forgetting the owner does not
// compile.
type Tenant struct {
	Owner string // the API key's owner; never empty
	User  string // a user within the owner; empty = all of the owner's users
}

// CheckUser returns ErrForbidden if the tenant is one user, and another one is named.
func (t Tenant) CheckUser(named string) error {
	if t.User != "" && named != "" && named != t.User {
		return Errorf(ErrForbidden, "you act for the user %q and not for %q", t.User, Clip(named, 100))
	}
	return nil
}

// Identity is who makes a request.
type Identity struct {
	Owner string
	User  string // an end user, who came by a token; empty when the caller acts for all its users
	Key   string // name of the API key; empty on loopback without keys
	KeyID KeyID  // of the API key, if it is one of the database
	// Rights is what the caller may do; they say nothing of whose things.
	Rights Scopes
	// Expires is when the caller is no longer let in, of an end user; zero = never.
	Expires time.Time
	// Operator is true for the command line that reads the data folder of this
	// process: it may do what no API key can, such as purge.
	Operator bool
}

// Tenant returns the rows that the identity may touch.
func (id Identity) Tenant() Tenant { return Tenant{Owner: id.Owner, User: id.User} }

// CodeTokenExpired tells that an end user has to come with a new token.
const CodeTokenExpired = "token_expired"

type identityKey struct{}

// WithIdentity returns a context that carries the caller's identity.
func WithIdentity(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// IdentityFrom returns the caller's identity, and false if there is none.
func IdentityFrom(ctx context.Context) (Identity, bool) {
	id, ok := ctx.Value(identityKey{}).(Identity)
	return id, ok
}
