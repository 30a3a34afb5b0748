package tokens

import (
	"hash/maphash"
	"unicode/utf8"

	"bobbin/app/core"
)

const maxEntries = 65_536 // of a cache: about 3 MB

// Counter counts cl100k_base tokens. All Counters of a process share the vocabulary, which
// the first count loads (about 0.01 s). Safe for concurrent use.
type Counter struct {
	// The cache has 128-bit hashes and not the strings: it keeps no user's text in memory. They have
	// random seeds, so nobody can construct a collision.
	cache *core.Cache[[2]uint64, int]
	seeds [2]maphash.Seed
}

// NewCounter returns a Counter.
func NewCounter() *Counter {
	return &Counter{core.NewCache[[2]uint64, int](maxEntries), [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

// Text returns the exact number of tokens of s. The names of special tokens
// ("<|endoftext|>") are plain text, and a byte that is not UTF-8 counts as U+FFFD, with
// which messages store it. The time is linear in the length of s for every text; counts
// are cached.
func (c *Counter) Text(s string) int {
	if s == "" {
		return 0
	}
	key := [2]uint64{maphash.String(c.seeds[0], s), maphash.String(c.seeds[1], s)}
	n, ok := c.cache.Get(key)
	if !ok {
		valid := s
		if !utf8.ValidString(s) {
			valid = string([]rune(s))
		}
		n = sharedVocabulary().countTokens(valid)
		c.cache.Set(key, n)
	}
	return n
}
