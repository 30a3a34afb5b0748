package tokens

import (
	"hash/maphash"
	"sync"
	"unicode/utf8"
)

const (
	maxCached   = 10_000 // characters; longer strings are not cached
	cacheShards = 16     // each has its own mutex
	// generationSize bounds the entries of half a shard: 16 × 2 × 2,048 = 65,536
	// counts, about 3 MB at most.
	generationSize = 2048
)

// cache stores the counts of short strings. It holds 128-bit hashes and not the
// strings: it keeps no user's text in memory, and its size is bounded by the number of
// entries. The hashes have random seeds, so nobody can construct a collision. Safe for
// concurrent use.
type cache struct {
	seeds  [2]maphash.Seed
	shards [cacheShards]shard
}

// shard has two generations: new entries go into the young one. When it is full, it
// replaces the old one, whose unused entries are dropped.
type shard struct {
	mu    sync.Mutex
	young map[cacheKey]int // guarded by mu
	old   map[cacheKey]int // guarded by mu
}

type cacheKey [2]uint64

func newCache() *cache {
	return &cache{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

// get returns the count of s; false = not cached.
func (c *cache) get(s string) (int, bool) {
	if !isCacheable(s) {
		return 0, false
	}
	key := c.keyOf(s)
	sh := c.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if n, ok := sh.young[key]; ok {
		return n, true
	}
	n, ok := sh.old[key]
	if ok {
		sh.put(key, n)
	}
	return n, ok
}

// put stores the count of s, unless s is too long.
func (c *cache) put(s string, n int) {
	if !isCacheable(s) {
		return
	}
	key := c.keyOf(s)
	sh := c.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.put(key, n)
}

// isCacheable reports whether s has less than maxCached characters.
func isCacheable(s string) bool {
	if len(s) < maxCached {
		return true
	}
	return len(s) < maxCached*utf8.UTFMax && utf8.RuneCountInString(s) < maxCached
}

// put writes to the young generation; the caller holds sh.mu.
func (sh *shard) put(key cacheKey, n int) {
	if len(sh.young) >= generationSize {
		sh.old, sh.young = sh.young, nil
	}
	if sh.young == nil {
		sh.young = make(map[cacheKey]int)
	}
	sh.young[key] = n
}

func (c *cache) keyOf(s string) cacheKey {
	return cacheKey{maphash.String(c.seeds[0], s), maphash.String(c.seeds[1], s)}
}

func (c *cache) shardOf(key cacheKey) *shard { return &c.shards[key[0]%cacheShards] }
