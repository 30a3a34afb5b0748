// Package agents runs one run of an agent through its graph, and reads the agents' files.
//
// Engine builds the graph once from its parts (nodes), resolves what a session's
// agent is told and may use (Profile), and executes runs (Execute). How a run lives and dies
// is the business of app/runs.
//
// # Catalog
//
// A Catalog holds the configured agents: one YAML file each, checked in full when Bobbin starts
// and each time an operator has them read again.
//
// LoadCatalog reads a folder over the built-in agents (builtin/*.yaml: assistant, quick,
// researcher): a file with the name of one replaces it. Reading is strict. A field
// that does not exist, a value of the wrong type, a word that is not allowed, or
// settings that contradict each other are errors with file, line and column, all
// of them at once:
//
//	agents/quick.yaml:7:3: context.polcy is not a known field; did you mean policy?
//
// At the start anything wrong is an error. Reload keeps the former agent of a broken file
// and replaces the others.
package agents
