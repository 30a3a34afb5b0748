package config

import (
	"net"
	"net/url"
	"strings"
	"time"

	"bobbin/app/core"
)

// JWT is whose tokens let the end users of a web chat in. It is off without keys.
type JWT struct {
	JWKSURL    string        `key:"jwks_url"`   // where the signer's public keys are fetched
	JWKSFile   string        `key:"jwks_file"`  // the same as a file
	AllowHTTP  bool          `key:"allow_http"` // keys may be fetched by http from other machines
	Issuer     string        `key:"issuer"`     // claim iss of every token
	Audience   string        `key:"audience"`   // one of the claim aud of every token
	Owner      string        `key:"owner"`      // whose users they are; empty = as OwnerClaim says
	OwnerClaim string        `key:"owner_claim"`
	UserClaim  string        `key:"user_claim"`
	Scopes     []string      `key:"scopes"`      // the most that a token may do
	ScopeClaim string        `key:"scope_claim"` // what a token may do; empty = all of Scopes
	Leeway     time.Duration `key:"leeway" range:"0s..5m"`
	MaxLife    time.Duration `key:"max_life" range:"0|1m.."` // of a token; 0 = no limit
	Refresh    time.Duration `key:"refresh" range:"1m..24h"` // how often keys are fetched
}

// Enabled reports whether tokens are taken.
func (j JWT) Enabled() bool { return j.JWKSURL != "" || j.JWKSFile != "" }

func (j JWT) validate(found *faults) {
	if !j.Enabled() {
		for _, given := range []struct{ key, value string }{
			{"issuer", j.Issuer}, {"audience", j.Audience}, {"owner", j.Owner}, {"owner_claim", j.OwnerClaim}, {"scope_claim", j.ScopeClaim},
		} {
			found.checkKey(given.value == "", "auth.jwt."+given.key, "there are no keys to check tokens with; set auth.jwt.jwks_url or auth.jwt.jwks_file, or remove it")
		}
		return
	}
	j.validateKeys(found)
	found.checkKey(j.Issuer != "", "auth.jwt.issuer", "it is missing; name what tokens have as iss, else those of anybody with such a key count")
	found.checkKey(j.Audience != "", "auth.jwt.audience", "it is missing; name what tokens have as aud, else those that are meant for other services count")
	switch {
	case j.Owner == "" && j.OwnerClaim == "":
		found.addFault("auth.jwt.owner", "it is missing; name the owner whose users the tokens are for, such as the name of your API key (or set auth.jwt.owner_claim)")
	case j.Owner != "" && j.OwnerClaim != "":
		found.addFault("auth.jwt.owner_claim", "auth.jwt.owner is set as well; choose one of them")
	case j.Owner != "":
		found.checkKey(ValidKeyName(j.Owner), "auth.jwt.owner", "%q must be 1 to 64 letters, digits, and . _ @ -", j.Owner)
	}
	found.checkKey(j.UserClaim != "", "auth.jwt.user_claim", "it is empty; name the claim that has the user, such as sub")
	rights, err := core.ParseRights(j.Scopes)
	found.checkKey(err == nil && core.UserRights.Has(rights), "auth.jwt.scopes", "%q are not what a token may do; use read, write, delete and export", strings.Join(j.Scopes, ","))
}

// validateKeys checks where the keys come from.
func (j JWT) validateKeys(found *faults) {
	if j.JWKSURL == "" {
		return
	}
	if j.JWKSFile != "" {
		found.addFault("auth.jwt.jwks_file", "auth.jwt.jwks_url is set as well; choose one of them")
	}
	u, err := url.Parse(j.JWKSURL)
	ok := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.Fragment == ""
	if !ok {
		found.addFault("auth.jwt.jwks_url", "this is not an address; write for example https://login.example.com/.well-known/jwks.json")
		return
	}
	found.checkKey(u.Scheme == "https" || j.AllowHTTP || isThisMachine(u.Hostname()), "auth.jwt.jwks_url",
		"keys that come by http can be changed on their way; use https, or set auth.jwt.allow_http if nobody is on it")
}

// isThisMachine reports whether the host is a name or an address of this machine.
func isThisMachine(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
