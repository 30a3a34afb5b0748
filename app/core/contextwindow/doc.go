// Package contextwindow decides what of a conversation is sent to the model.
//
// A Policy says when to summarize and how much to keep; the five presets are rows
// of one table. Plan is a pure function: from the policy, the model's limits, the
// sizes of the messages and the PromptState of the last compaction it makes a
// Decision, without I/O, clock, or model. Assemble turns a Decision into the
// prompt. The same two functions serve every model call, /context and dry runs,
// so what is shown is what happens.
//
//	session row ─┐
//	messages ────┼─▶ Input ─▶ Plan ─▶ Decision ─▶ Assemble ─▶ llm.Request
//	PromptState ─┘              │
//	                            └─ Order ─▶ (compaction: summarize, commit) ─▶ Plan again
//
// Sizes come in as cl100k_base tokens, the one ruler; Plan corrects them by the
// model's factor and speaks of the model's own tokens from there on.
//
// The promises are the ten invariants of CONTEXT § 3; each has a property test
// (invariants_test.go) and a mutant that this test kills.
//
// Everything here is safe for concurrent use: there is no state.
package contextwindow
