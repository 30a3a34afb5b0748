// Package auth authenticates requests.
//
// A request with an API key, as `Authorization: Bearer …` or `X-API-Key: …`, acts for
// the key's owner. A request without a key acts for the owner "local", but only if keys
// are not required and it comes directly from this machine: from a loopback address, to
// a local Host (against DNS rebinding), not from a web page of another origin, and not
// through a proxy. A token that the server creates at each start authenticates the command
// line on the same machine as "local", also where keys are required.
//
// Keys are in the configuration or in the database (Stored). Those of the database have
// scopes, may expire, and can be revoked, which takes effect within two seconds.
//
// Secrets are stored only as SHA-256 sums. Those of the configuration are compared in
// constant time; those of the database are looked up by the sum, which timing cannot
// reveal step by step.
//
// # Tokens of end users
//
// A Verifier accepts a signed token (JWT, RFC 7519) of an end user of a web chat only if a
// public key of the signer verifies its signature, by an algorithm that the key allows, and if
// the token is meant for this server and valid now. Keys in the token itself (jwk, jku, x5c,
// x5u) are ignored.
//
// Keys are the signer's public keys, a JWKS (RFC 7517) from a URL or a file.
//
//	Run, every Refresh            a token with an unknown kid
//	       │                      │ a burst of 3, then 1 every 10 s
//	       ▼                      ▼
//	     one fetch at a time: 5 s, 512 KiB, no redirects
//	       │ succeeded            │ failed
//	       ▼                      ▼
//	  the new keys         the previous keys, until a fetch succeeds
//
// A request waits for a fetch only if its token has an unknown key. Tokens are not stored,
// and errors repeat nothing of them.
package auth
