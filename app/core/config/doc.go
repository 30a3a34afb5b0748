// Package config is Bobbin's settings: one plain struct, its defaults, where its
// values come from, and what is wrong with them.
//
// Load reads the sources in this order, the first that has a key wins: flag,
// environment variable, bobbin.yaml, default. Everything that is wrong comes back
// at once, each fault with its place, its key, and what to do. Keys is the one
// list of what can be set; docs/CONFIGURATION.md is written from it by a test.
//
// A Config is plain data: copy it, hand parts their sub-struct. Secrets print as
// *** in every way.
package config
