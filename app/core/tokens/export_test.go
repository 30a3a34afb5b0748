package tokens

// Limits of the cache.
const (
	MaxCached  = maxCached
	MaxEntries = cacheShards * 2 * generationSize
)

// VocabularyData is the embedded vocabulary.
func VocabularyData() string { return vocabularyData }

// Merge counts one pre-token with the heap.
func (c *Counter) Merge(piece string) int {
	m := merger{vocabulary: sharedVocabulary()}
	return m.countTokens(piece)
}

// Cached returns how many counts are remembered.
func (c *Counter) Cached() int {
	n := 0
	for i := range c.cache.shards {
		sh := &c.cache.shards[i]
		sh.mu.Lock()
		n += len(sh.young) + len(sh.old)
		sh.mu.Unlock()
	}
	return n
}

// Builtin returns the built-in table.
func Builtin() []ModelInfo { return builtinModels() }

// LongestToken returns the length of the longest token, and what the heap takes it
// to be.
func (c *Counter) LongestToken() (got, want int) {
	for _, at := range sharedVocabulary().starts {
		got = max(got, len(tokenAt(at)))
	}
	return got, maxToken
}

// Sessions returns of how many conversations something is kept.
func Sessions(c *Calibrator) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions.young) + len(c.sessions.old)
}
