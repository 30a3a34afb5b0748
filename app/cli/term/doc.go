// Package term draws what people see in a terminal: answers as they stream, with
// their Markdown rendered, and the picture of a context window. Why it renders
// Markdown itself is in docs/adr/0007.
package term
