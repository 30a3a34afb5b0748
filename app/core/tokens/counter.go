package tokens

import "unicode/utf8"

// Counter counts cl100k_base tokens. All Counters of a process share the vocabulary, which
// the first count loads (about 0.01 s). Safe for concurrent use.
type Counter struct {
	cache *cache
}

// NewCounter returns a Counter.
func NewCounter() *Counter { return &Counter{cache: newCache()} }

// Text returns the exact number of tokens of s. The names of special tokens
// ("<|endoftext|>") are plain text, and a byte that is not UTF-8 counts as U+FFFD, with
// which messages store it. The time is linear in the length of s for every text; counts
// of short strings are cached.
func (c *Counter) Text(s string) int {
	if s == "" {
		return 0
	}
	if n, ok := c.cache.get(s); ok {
		return n
	}
	valid := s
	if !utf8.ValidString(s) {
		valid = string([]rune(s))
	}
	n := sharedVocabulary().countTokens(valid)
	c.cache.put(s, n)
	return n
}
