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
// tiktoken-go splits a text by a regular expression and merges the bytes of each pre-token by repeated
// searches for the best pair: quadratic in the length of a run without a break. This package finds the
// same pre-tokens in one pass and merges them with a heap, O(n log n), over the same vocabulary. Tests
// compare the counts with tiktoken-go's.
//
// Everything here is safe for concurrent use.
package tokens
