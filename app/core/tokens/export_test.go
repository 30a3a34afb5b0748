package tokens

// Limits of the cache.
const (
	MaxCached  = maxCached
	MaxEntries = cacheShards * 2 * generationSize
)

// VocabularyData is the embedded vocabulary.
func VocabularyData() string { return vocabularyData }

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

// Sessions returns of how many conversations something is kept.
func Sessions(c *Calibrator) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions.young) + len(c.sessions.old)
}
