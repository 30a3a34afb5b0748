package jwt

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-jose/go-jose/v4/jwt"

	"bobbin/app/core"
)

// claims are what a signed token says.
type claims struct {
	jwt.Claims
	all map[string]any
}

// accept returns for whom the claims speak at that time.
func (v *Verifier) accept(c claims, now time.Time) (core.Identity, error) {
	switch {
	case c.Issuer != v.opts.Issuer:
		return core.Identity{}, invalid("the token is of another issuer")
	case !slices.Contains([]string(c.Audience), v.opts.Audience):
		return core.Identity{}, invalid("the token is meant for another audience")
	}
	if err := v.checkTimes(c, now); err != nil {
		return core.Identity{}, err
	}
	owner, err := v.ownerOf(c)
	if err != nil {
		return core.Identity{}, err
	}
	user, ok := c.all[v.opts.UserClaim].(string)
	if !ok || !sound(user) {
		return core.Identity{}, invalid("the token names no user: the claim for it is missing, empty, longer than 200 bytes, or no plain text")
	}
	return core.Identity{
		Owner: owner, User: user, Rights: v.rightsOf(c), Expires: c.Expiry.Time().Add(v.opts.Leeway).UTC(),
	}, nil
}

// lastTime is the last second of the year 9999: what is beyond is no time.
const lastTime = 253402300799

// checkTimes checks when the token was made and how long it is good.
func (v *Verifier) checkTimes(c claims, now time.Time) error {
	for _, t := range []*jwt.NumericDate{c.Expiry, c.NotBefore, c.IssuedAt} {
		if t != nil && (*t < 0 || *t > lastTime) {
			return invalid("the token has a time that is none")
		}
	}
	switch {
	case c.Expiry == nil:
		return invalid("the token does not say when it expires (exp)")
	case !now.Before(c.Expiry.Time().Add(v.opts.Leeway)):
		return &core.Error{Kind: core.ErrUnauthorized, Code: core.CodeTokenExpired, Message: "the token has expired; come with a new one"}
	case c.NotBefore != nil && now.Add(v.opts.Leeway).Before(c.NotBefore.Time()):
		return invalid("the token is not good yet (nbf)")
	case c.IssuedAt != nil && now.Add(v.opts.Leeway).Before(c.IssuedAt.Time()):
		return invalid("the token was made in the future (iat): the clock of its signer is fast")
	}
	from := now.Add(v.opts.Leeway)
	if c.IssuedAt != nil {
		from = c.IssuedAt.Time()
	}
	if v.opts.MaxLife > 0 && c.Expiry.Time().Sub(from) > v.opts.MaxLife {
		return invalid("the token is good for longer than is allowed here (auth.jwt.max_life)")
	}
	return nil
}

// ownerName is what an owner can be called, as API keys are.
var ownerName = regexp.MustCompile(`^[A-Za-z0-9._@-]{1,64}$`)

// ownerOf returns whose users the token's is one of. What this machine's own user made
// is for nobody whom a claim names.
func (v *Verifier) ownerOf(c claims) (string, error) {
	if v.opts.Owner != "" {
		return v.opts.Owner, nil
	}
	owner, ok := c.all[v.opts.OwnerClaim].(string)
	if !ok || owner == core.LocalOwner || !ownerName.MatchString(owner) {
		return "", invalid("the token names no owner: the claim for it must be 1 to 64 letters, digits, and . _ @ -, and not " + core.LocalOwner)
	}
	return owner, nil
}

// maxUser bounds a user's id, in bytes, as everywhere.
const maxUser = 200

// sound reports whether a user can be called so.
func sound(user string) bool {
	return user != "" && len(user) <= maxUser && core.CleanText(user) == user && strings.TrimSpace(user) == user &&
		!strings.ContainsFunc(user, unicode.IsControl)
}

// rightsOf returns what the token may do.
func (v *Verifier) rightsOf(c claims) core.Rights {
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
	var rights core.Rights
	for _, word := range words {
		if right, err := core.ParseRights([]string{strings.TrimPrefix(word, "bobbin:")}); err == nil {
			rights |= right
		}
	}
	return rights & v.opts.Rights
}
