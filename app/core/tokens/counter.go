package tokens

import "unicode/utf8"

// Counter counts cl100k_base tokens. One is enough for a process; more of them share
// the vocabulary, which is loaded at the first count (about 0.1 s), once. Safe for
// concurrent use.
type Counter struct {
	cache *cache
}

// NewCounter returns a Counter, or an error if the vocabulary in the program is
// not the published one.
func NewCounter() (*Counter, error) {
	if err := published(); err != nil {
		return nil, err
	}
	return &Counter{cache: newCache()}, nil
}

// Text returns how many tokens s is, exactly. The names of special tokens
// ("<|endoftext|>") are text like any other, and a byte that is not UTF-8 counts
// as U+FFFD, which is what ingestion makes of it. The time is linear in the
// length of s, whatever it holds; counts of short strings are cached (C1, C3).
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
	n := loaded().count(valid)
	c.cache.put(s, n)
	return n
}
