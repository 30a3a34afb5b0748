// Package agents runs one run of an agent through its graph.
//
// Engine builds the graph once from its parts (nodes), resolves what a session's
// agent is told and may use (Profile), and executes runs (Execute). What agents
// there are comes from catalog; how a run lives and dies is the business of
// app/runs.
package agents
