// Package redact takes secrets out of text that is handed on or kept: keys, tokens,
// passwords, private keys. In their place stands what kind they were, such as
// "[redacted: api key]".
//
// A secret is known by one of four things, each in a file:
//
//	shape   sk-…, ghp_…, AKIA…, eyJ….eyJ….…: what only a provider's key looks like
//	label   password=…, "api_key": "…", --token …, Authorization: Bearer …
//	URL     ://user:…@host
//	PEM     -----BEGIN … PRIVATE KEY-----
//
// What merely looks random stays: hashes, UUIDs, base64 and file names are what
// conversations are about. So does what a label introduces and is no secret:
// variables, placeholders, types, calls ("password = os.getenv(…)"). A secret that
// has neither shape nor label is not found.
//
// Text is a pure function; its time is linear in the size of the text, which
// BenchmarkText prints for hostile ones. Applied to its own result it changes nothing.
package redact
