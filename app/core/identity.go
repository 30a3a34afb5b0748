package core

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
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

// Scopes is what a caller may do, a set of the Can… values. Zero is nothing. On the
// wire it is a list of words, called scopes.
type Scopes uint8

// What a caller may do. Each is by itself: who may write need not be able to read.
const (
	CanRead    Scopes = 1 << iota // look at what is the owner's
	CanWrite                      // change it, and let agents work
	CanMetrics                    // read the metrics, which are of all owners
	CanDelete                     // delete sessions and users for good
	CanExport                     // export all data of a user
)

// Everything is what this machine's own user may do.
const Everything = CanRead | CanWrite | CanMetrics | CanDelete | CanExport

// ReadWrite is what a key may do that nothing was said of.
const ReadWrite = CanRead | CanWrite

// UserRights is the most that the token of an end user may allow.
const UserRights = ReadWrite | CanDelete | CanExport

// rightWords are the words of rights, in their order.
func rightWords() []string { return []string{"read", "write", "metrics", "delete", "export"} }

// ParseRights returns the rights that the words name, at least one. ErrInvalid names
// the words that there are.
func ParseRights(words []string) (Scopes, error) {
	var r Scopes
	known := rightWords()
	for _, word := range words {
		i := slices.Index(known, word)
		if i < 0 {
			return 0, Errorf(ErrInvalid, "%.40q is no scope; there are %s", word, strings.Join(known, ", "))
		}
		r |= 1 << i
	}
	if r == 0 {
		return 0, Errorf(ErrInvalid, "a key needs a scope; there are %s", strings.Join(known, ", "))
	}
	return r, nil
}

// Has reports whether everything that is wanted is allowed.
func (r Scopes) Has(want Scopes) bool { return r&want == want }

// Words returns the scopes, never nil.
func (r Scopes) Words() []string {
	words := []string{}
	for i, word := range rightWords() {
		if r.Has(1 << i) {
			words = append(words, word)
		}
	}
	return words
}

// String returns the scopes with spaces between them.
func (r Scopes) String() string { return strings.Join(r.Words(), " ") }

// MarshalJSON returns the scopes as a list.
func (r Scopes) MarshalJSON() ([]byte, error) { return json.Marshal(r.Words()) }

// UnmarshalJSON reads a list of scopes.
func (r *Scopes) UnmarshalJSON(data []byte) error {
	var words []string
	if err := json.Unmarshal(data, &words); err != nil {
		return err
	}
	read, err := ParseRights(words)
	*r = read
	return err
}
