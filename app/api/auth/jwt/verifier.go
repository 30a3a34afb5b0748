package jwt

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"bobbin/app/core"
)

// CodeInvalid tells that a token is of no use, here or at all. One that was of use once
// has the code core.CodeTokenExpired.
const CodeInvalid = "token_invalid"

// maxToken bounds a token, in bytes.
const maxToken = 8 << 10

// Options say which tokens are taken, and for whom they speak. Issuer, Audience,
// UserClaim, Rights, and Owner or OwnerClaim are required.
type Options struct {
	Issuer     string
	Audience   string
	Owner      string // of all users; empty = the one that OwnerClaim names
	OwnerClaim string
	UserClaim  string
	Rights     core.Rights // the most that a token may do
	ScopeClaim string      // what of it; empty = all
	Leeway     time.Duration
	MaxLife    time.Duration // how long tokens may be good; 0 = however long
}

// Verifier says for whom tokens speak. Safe for concurrent use.
type Verifier struct {
	keys *Keys
	opts Options
}

// New returns a verifier of tokens that are signed with the keys.
func New(keys *Keys, o Options) *Verifier { return &Verifier{keys: keys, opts: o} }

// Identify returns the end user that the token speaks for. ErrUnauthorized says why it
// is not taken: core.CodeTokenExpired and CodeInvalid; ErrUnavailable that the keys
// cannot be had.
func (v *Verifier) Identify(ctx context.Context, token string) (core.Identity, error) {
	if len(token) > maxToken {
		return core.Identity{}, invalid("the token is too long")
	}
	read, err := jwt.ParseSigned(token, algorithms())
	var wrong *jose.ErrUnexpectedSignatureAlgorithm
	switch {
	case errors.As(err, &wrong):
		return core.Identity{}, invalid("the token is signed by an algorithm that is not taken here; RS256, RS384, RS512, PS256, ES256 and EdDSA are")
	case err != nil || len(read.Headers) != 1:
		return core.Identity{}, invalid("this is not a signed token (JWT) that can be read")
	}
	header := read.Headers[0]
	if err := checkHeader(header); err != nil {
		return core.Identity{}, err
	}
	keys, err := v.keys.find(ctx, header.KeyID, jose.SignatureAlgorithm(header.Algorithm))
	if err != nil {
		return core.Identity{}, err
	}
	if !slices.ContainsFunc(keys, func(k key) bool { return read.Claims(k.public) == nil }) {
		return core.Identity{}, invalid("the signature of the token is wrong")
	}
	var c claims
	if read.UnsafeClaimsWithoutVerification(&c.Claims, &c.all) != nil { // the line above has verified them
		return core.Identity{}, invalid("the claims of the token cannot be read")
	}
	return v.accept(c, time.Now())
}

// checkHeader refuses what is no token for bearers, and what asks for more than we
// know.
func checkHeader(h jose.Header) error {
	for _, name := range []string{"crit", "b64"} {
		if _, ok := h.ExtraHeaders[jose.HeaderKey(name)]; ok {
			return invalid("the token asks for an extension that is not known here")
		}
	}
	typ, given := h.ExtraHeaders[jose.HeaderType]
	word, isText := typ.(string)
	word = strings.TrimPrefix(strings.ToLower(word), "application/")
	if given && (!isText || !slices.Contains([]string{"jwt", "at+jwt"}, word)) {
		return invalid("the token is of a type that is not for this; JWT and at+jwt are")
	}
	return nil
}

// invalid returns why a token is of no use. It holds nothing of the token.
func invalid(message string) error {
	return &core.Error{Kind: core.ErrUnauthorized, Code: CodeInvalid, Message: message}
}
