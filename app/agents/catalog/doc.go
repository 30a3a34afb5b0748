// Package catalog is the agents that are configured: one YAML file each, checked
// in full when Bobbin starts, never changed while it runs.
//
// Load reads a folder over the built-in agents (builtin/*.yaml: assistant, quick,
// researcher): a file with the name of one replaces it. Reading is strict. A field
// that does not exist, a value of the wrong type, a word that is not allowed, or
// settings that contradict each other are errors with file, line and column, all
// of them at once:
//
//	agents/quick.yaml:7:3: context.polcy is not a known field; did you mean policy?
//
// A Catalog is safe for concurrent use.
package catalog
