package auth

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
