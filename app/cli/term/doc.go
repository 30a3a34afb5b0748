// Package term draws output for terminals: answers as they stream, with rendered Markdown,
// and pictures of context windows. It reads the user's input (Reader). docs/adr/0007 explains why it renders Markdown itself.
package term
