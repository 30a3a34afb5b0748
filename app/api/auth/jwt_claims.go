package auth

import (
	"errors"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/go-jose/go-jose/v4/jwt"

	"bobbin/app/core"
)

// claims are the claims of a verified token.
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

// rightsOf returns the scopes of the token.
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
