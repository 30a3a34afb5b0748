package auth

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"bobbin/app/core"
)

// CodeInvalid means that a token is not valid here. Expired tokens have the code
// core.CodeTokenExpired.
const CodeInvalid = "token_invalid"

// maxToken bounds a token in bytes.
const maxToken = 8 << 10

// VerifierOptions say which tokens are accepted and whom they identify. Issuer, Audience,
// UserClaim, Rights, and Owner or OwnerClaim are required.
type VerifierOptions struct {
	Issuer     string
	Audience   string
	Owner      string // of all users; empty = from OwnerClaim
	OwnerClaim string
	UserClaim  string
	Rights     core.Scopes   // the maximum for a token
	ScopeClaim string        // restricts Rights; empty = all of them
	Leeway     time.Duration // allowed clock skew
	MaxLife    time.Duration // max. lifetime of tokens; 0 = no limit
}

// Verifier verifies tokens. Safe for concurrent use.
type Verifier struct {
	keys *Keys
	opts VerifierOptions
}

// NewVerifier returns a verifier of tokens signed with the keys.
func NewVerifier(keys *Keys, o VerifierOptions) *Verifier { return &Verifier{keys: keys, opts: o} }

// Identify returns the end user whom the token identifies. A rejected token is
// ErrUnauthorized, with core.CodeTokenExpired or CodeInvalid; ErrUnavailable means that the
// keys could not be fetched yet.
func (v *Verifier) Identify(ctx context.Context, token string) (core.Identity, error) {
	if len(token) > maxToken {
		return core.Identity{}, invalidToken("the token is too long")
	}
	read, err := jwt.ParseSigned(token, allowedAlgorithms())
	var wrong *jose.ErrUnexpectedSignatureAlgorithm
	switch {
	case errors.As(err, &wrong):
		return core.Identity{}, invalidToken("the signing algorithm of the token is not accepted; use RS256, RS384, RS512, PS256, ES256 or EdDSA")
	case err != nil || len(read.Headers) != 1:
		return core.Identity{}, invalidToken("this is not a valid signed token (JWT)")
	}
	header := read.Headers[0]
	for _, name := range []string{"crit", "b64"} {
		if _, ok := header.ExtraHeaders[jose.HeaderKey(name)]; ok {
			return core.Identity{}, invalidToken("the token requires an extension that is not supported")
		}
	}
	typ, given := header.ExtraHeaders[jose.HeaderType]
	word, isText := typ.(string)
	word = strings.TrimPrefix(strings.ToLower(word), "application/")
	if given && (!isText || !slices.Contains([]string{"jwt", "at+jwt"}, word)) {
		return core.Identity{}, invalidToken("the token has the wrong type (typ); use JWT or at+jwt")
	}
	keys, err := v.keys.findKeys(ctx, header.KeyID, jose.SignatureAlgorithm(header.Algorithm))
	if err != nil {
		return core.Identity{}, err
	}
	if !slices.ContainsFunc(keys, func(k jose.JSONWebKey) bool { return read.Claims(k.Key) == nil }) {
		return core.Identity{}, invalidToken("the signature of the token is invalid")
	}
	var c claims
	if read.UnsafeClaimsWithoutVerification(&c.Claims, &c.all) != nil { // the line above has verified them
		return core.Identity{}, invalidToken("the claims of the token are not valid JSON")
	}
	return v.checkClaims(c, time.Now())
}

// invalidToken returns the error of a rejected token, which it does not repeat.
func invalidToken(message string) error {
	return &core.Error{Kind: core.ErrUnauthorized, Code: CodeInvalid, Message: message}
}

type claims struct {
	jwt.Claims
	all map[string]any
}

// checkClaims returns the identity in the claims if they are valid at that time.
func (v *Verifier) checkClaims(c claims, now time.Time) (core.Identity, error) {
	if c.Expiry == nil || *c.Expiry > maxUnixTime {
		return core.Identity{}, invalidToken("the token has no expiry time (exp), or one out of range")
	}
	expected := jwt.Expected{Issuer: v.opts.Issuer, AnyAudience: jwt.Audience{v.opts.Audience}, Time: now}
	if err := c.ValidateWithLeeway(expected, v.opts.Leeway); errors.Is(err, jwt.ErrExpired) {
		return core.Identity{}, &core.Error{Kind: core.ErrUnauthorized, Code: core.CodeTokenExpired, Message: "the token has expired; send a new one"}
	} else if err != nil {
		return core.Identity{}, invalidToken("the token is not accepted: " + strings.TrimPrefix(err.Error(), "go-jose/go-jose/jwt: "))
	}
	issued := now.Add(v.opts.Leeway)
	if c.IssuedAt != nil {
		issued = c.IssuedAt.Time()
	}
	if v.opts.MaxLife > 0 && c.Expiry.Time().Sub(issued) > v.opts.MaxLife {
		return core.Identity{}, invalidToken("the lifetime of the token is longer than allowed (auth.jwt.max_life)")
	}
	owner := v.opts.Owner
	if owner == "" {
		owner, _ = c.all[v.opts.OwnerClaim].(string)
		if owner == core.LocalOwner || !ownerName.MatchString(owner) {
			return core.Identity{}, invalidToken("the token names no owner: the owner claim must be 1 to 64 letters, digits, and . _ @ -, and not " + core.LocalOwner)
		}
	}
	user, ok := c.all[v.opts.UserClaim].(string)
	if !ok || user == "" || len(user) > maxUser || core.CleanText(user) != user || strings.TrimSpace(user) != user || strings.ContainsFunc(user, unicode.IsControl) {
		return core.Identity{}, invalidToken("the token names no user: the user claim is missing, empty, longer than 200 bytes, or not plain text")
	}
	return core.Identity{
		Owner: owner, User: user, Rights: v.rightsOf(c), Expires: c.Expiry.Time().Add(v.opts.Leeway).UTC(),
	}, nil
}

// maxUnixTime is the last second of the year 9999.
const maxUnixTime = 253402300799

// ownerName matches valid owner names, which are also those of API keys.
var ownerName = regexp.MustCompile(`^[A-Za-z0-9._@-]{1,64}$`)

// maxUser bounds a user's id in bytes, as in the API.
const maxUser = 200

func (v *Verifier) rightsOf(c claims) core.Scopes {
	if v.opts.ScopeClaim == "" {
		return v.opts.Rights
	}
	var words []string
	switch given := c.all[v.opts.ScopeClaim].(type) {
	case string:
		words = strings.Fields(given)
	case []any:
		for _, one := range given {
			if word, ok := one.(string); ok {
				words = append(words, word)
			}
		}
	}
	var rights core.Scopes
	for _, word := range words {
		if right, err := core.ParseRights([]string{strings.TrimPrefix(word, "bobbin:")}); err == nil {
			rights |= right
		}
	}
	return rights & v.opts.Rights
}
