// Package tokens measures prompts: how many tokens a text, a message, or a tool
// definition has, how large the models' windows are, and how far a model's own
// count is from ours.
//
// Counter always counts in cl100k_base, so that stored counts can be added up for every
// model. The vocabulary is embedded; nothing is loaded from the network. Lookup knows
// windows and output limits by the longest prefix of a model's name. Calibrator learns
// from the counts that providers report how many of their tokens one of ours is.
//
// # What a count costs
//
// tiktoken-go splits a text into pre-tokens with a regular expression and merges the
// bytes of each by repeated searches for the best pair: quadratic in the length of the
// pre-token, and a run without a break is one pre-token. 100 KB of one letter took
// 6.6 s. So this package splits the text with a scanner that finds the same pre-tokens
// in one pass:
//
//	pre-token that is itself a token ───▶ 1
//	other pre-tokens up to 256 bytes ───▶ tiktoken-go, neighbors together, at most 4 KiB at a time
//	longer ones                      ───▶ merged here with a heap, over the same vocabulary: O(n log n)
//
// All three methods return the exact count; tests compare them with tiktoken-go and
// with a second, independent tokenizer. `go test -run XXX -bench MiB
// ./app/core/tokens` prints the time for 1 MiB of each kind of text.
//
// Everything here is safe for concurrent use.
package tokens
