// Package jwt says for whom a signed token (RFC 7519) speaks: an end user of a web chat.
//
// A Verifier takes a token only if a public key of the signer's made its signature, by
// an algorithm that the key is for, and if it is meant for this server, at this time.
// What the token itself says of keys (jwk, jku, x5c, x5u) is ignored.
//
// Keys are the signer's public keys, a JWKS (RFC 7517) behind a URL or in a file.
//
//	Run, every Refresh            a token with an unknown kid
//	       │                      │ at most 3 at once, 1 each 10 s
//	       ▼                      ▼
//	     one fetch at a time: 5 s, 512 KiB, no redirects
//	       │ good                 │ failed
//	       ▼                      ▼
//	  the keys of now      the keys of before, for as long as it takes
//
// A request waits for a fetch only if its token has a key that is not known. Nothing is
// kept of tokens, and no error has anything of them.
package jwt
