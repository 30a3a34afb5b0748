// Package redact replaces secrets in text that is stored or sent to another service:
// keys, tokens, passwords, private keys, card numbers. The marker in their place says
// what kind of secret it was, such as "[redacted: api key]".
//
// There are five kinds of rules, each in its own file:
//
//	shape   sk-…, ghp_…, AKIA…, eyJ….eyJ….…: what only a provider's key looks like
//	label   password=…, "api_key": "…", --token …, Authorization: Bearer …
//	URL     ://user:…@host
//	PEM     -----BEGIN … PRIVATE KEY-----
//	number  of a payment card with a valid check digit, 123-45-6789, PIN: 1234
//
// Text that only looks random stays: hashes, UUIDs, base64 and file names are what
// conversations are about. A value after a label is a secret if it looks like one: it has
// a digit, or, for a password, it is in quotes or directly behind "=". Variables,
// placeholders and calls ("password = os.getenv(…)") stay. A secret that has neither
// shape nor label is not found.
//
// Text is a pure function; its time is linear in the size of the text
// (BenchmarkText prints it for hostile texts). A second pass over its own result
// changes nothing.
package redact
