// Package auth says who makes a request.
//
// With API keys a request carries one, as `Authorization: Bearer …` or
// `X-API-Key: …`, and acts for the key's owner. Without a key a request acts for
// the owner "local", but only if keys are not required and it comes from this
// machine in person: from a loopback address, to a local Host (else a foreign
// name could be pointed at us), not from a web page of another origin, and not
// through a proxy. A token that the server makes at each start lets the command
// line on the same machine in as "local", also where keys are required.
//
// Keys are in the configuration, or in the database (Stored): those have rights of
// their own, may expire, and can be revoked, which counts within two seconds.
//
// Secrets are kept as SHA-256 sums only. Those of the configuration are compared in
// constant time; those of the database are looked up by the sum, of which nothing can be
// guessed step by step.
package auth
