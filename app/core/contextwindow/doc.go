// Package contextwindow decides which parts of a conversation are sent to the model.
//
// A Policy says when to summarize and how much to keep; the five presets are rows
// of one table. Plan is a pure function: from the policy, the model's limits, the
// sizes of the messages and the PromptState of the last compaction it computes a
// Decision, without I/O, clock, or model. Assemble turns a Decision into the
// prompt. The same two functions serve every model call, /context and dry runs:
// reports show exactly what is sent.
//
//	session row ─┐
//	messages ────┼─▶ Input ─▶ Plan ─▶ Decision ─▶ Assemble ─▶ llm.Request
//	PromptState ─┘              │
//	                            └─ Order ─▶ (compaction: summarize, commit) ─▶ Plan again
//
// Sizes come in as cl100k_base tokens; Plan multiplies them by the model's factor and
// then uses the model's own tokens.
//
// These invariants hold; each has a property test (invariants_test.go) and a mutant
// that the test kills (tests/mutants):
//
//  1. No prompt is larger than what the model can be sent.
//  2. Every message is in exactly one place, and the prompt says what is left out.
//  3. The cursor only moves forward, over messages that were summarized.
//  4. Every tool call has one result, and every result follows its call.
//  5. The latest user message is sent whole, unless it alone exceeds the room.
//  6. A compaction lands below its trigger; if it cannot, new material is needed
//     before the next one.
//  7. Between two compactions a prompt only grows at its end, recalled passages aside, which stay
//     as long as a thought behind them does. No thought is sent behind another prompt than the
//     one that it was produced behind.
//  8. A policy without triggers never summarizes.
//  9. The first message of a prompt is a user's.
//  10. Below every trigger the conversation is sent verbatim.
//  11. Recalled passages quote only what a prompt does not show, stay within their share,
//     and change nothing else in it.
//  12. What a user set for the whole conversation is in every prompt, in its message or in a
//     list that keeps to its share; only a message that needs the whole prompt omits the list.
//     It is never in a system block.
//
// The package is safe for concurrent use: it has no state.
package contextwindow
