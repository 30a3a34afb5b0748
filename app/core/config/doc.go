// Package config is Bobbin's settings: one plain struct, its defaults, where its
// values come from, and what is wrong with them.
//
// Load reads the sources in this order, the first that has a key wins: flag,
// environment variable, bobbin.yaml, default. Everything that is wrong comes back
// at once, each fault with its place, its key, and what to do. The tags key of the
// fields are what can be set (Keys); docs/CONFIGURATION.md says what each means.
//
// A Config is plain data: copy it, hand parts their sub-struct. Secrets print as
// *** in every way.
package config
