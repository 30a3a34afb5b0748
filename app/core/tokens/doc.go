// Package tokens is Bobbin's ruler: how many tokens a text, a message, or a tool
// definition has, how large the models' windows are, and how far a model's own
// count is from ours.
//
// Counter counts in cl100k_base, always (CONTEXT § 5): stored counts can then be
// added up whatever model comes later. The vocabulary is embedded; nothing is
// loaded from the network. Models knows windows and output limits by the longest
// prefix of a model's name (W9). Calibrator learns from what providers report how
// many of their tokens one of ours is.
//
// # What a count costs
//
// tiktoken-go cuts a text into pre-tokens by a regular expression and merges the
// bytes of each by searching for the best pair again and again: quadratic in the
// length of the pre-token, and a run without a break is one pre-token. 100 KB of
// one letter took 6.6 s. So the text is cut here, by a scanner that finds the same
// pre-tokens in one pass:
//
//	pre-token that is itself a token ───▶ 1
//	other pre-tokens up to 256 bytes ───▶ tiktoken-go, neighbors together, at most 4 KiB at a time
//	longer ones                      ───▶ merged here with a heap, over the same vocabulary: O(n log n)
//
// All three ways give the exact count; tests hold them against tiktoken-go and
// against a second, independent tokenizer. `go test -run XXX -bench MiB
// ./app/core/tokens` prints what 1 MiB of each kind of text costs.
//
// Everything here is safe for concurrent use.
package tokens
