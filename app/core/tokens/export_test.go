package tokens

// Limits of what tiktoken-go gets, for the tests.
const (
	MaxPiece   = maxPiece
	MaxSegment = maxSegment
	MaxCached  = maxCached
	MaxEntries = cacheShards * 2 * generationSize
)

// Part is a part of a text and whether tiktoken-go counts it.
type Part struct {
	Text    string
	Library bool
}

// Split cuts a text into the parts that are counted one by one.
func (c *Counter) Split(s string) []Part {
	var parts []Part
	for text, way := range loaded().split(s) {
		parts = append(parts, Part{Text: text, Library: way == byLibrary})
	}
	return parts
}

// Pretokens cuts a text into its pre-tokens.
func Pretokens(s string) []string {
	var list []string
	for s != "" {
		n := pretoken(s)
		list = append(list, s[:n])
		s = s[n:]
	}
	return list
}

// Merge counts one pre-token with the heap.
func (c *Counter) Merge(piece string) int { return mergeCount(piece, loaded().ranks) }

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
func Builtin() []ModelInfo { return builtin() }

// LongestToken returns the length of the longest token, and what the heap takes it
// to be.
func (c *Counter) LongestToken() (got, want int) {
	for token := range loaded().ranks {
		got = max(got, len(token))
	}
	return got, maxToken
}

// Sessions returns of how many conversations something is kept.
func Sessions(c *Calibrator) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions.young) + len(c.sessions.old)
}
