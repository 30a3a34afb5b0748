package tokens

import (
	"hash/maphash"
	"sync"
	"unicode/utf8"
)

const (
	maxCached   = 10_000 // characters; strings of so many and more are counted anew (C3)
	cacheShards = 16     // each has its own mutex
	// generationSize bounds the entries of half a shard: 16 × 2 × 2,048 = 65,536
	// counts, about 3 MB at most.
	generationSize = 2048
)

// cache remembers the counts of short strings. It holds 128-bit hashes and not the
// strings: nobody's text stays in memory for it, and its size is bounded by the
// number of entries. The hashes are seeded at random, so nobody can make two texts
// collide on purpose. Safe for concurrent use.
type cache struct {
	seeds  [2]maphash.Seed
	shards [cacheShards]shard
}

// shard is two generations: entries are written to the young one; when it is full
// it becomes the old one, and what nobody asked for since is forgotten.
type shard struct {
	mu    sync.Mutex
	young map[cacheKey]int // guarded by mu
	old   map[cacheKey]int // guarded by mu
}

type cacheKey [2]uint64

func newCache() *cache {
	return &cache{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

// get returns the count of s, and false if it is not known.
func (c *cache) get(s string) (int, bool) {
	if !cacheable(s) {
		return 0, false
	}
	key := c.key(s)
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

// put remembers the count of s, unless s is too long.
func (c *cache) put(s string, n int) {
	if !cacheable(s) {
		return
	}
	key := c.key(s)
	sh := c.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.put(key, n)
}

// cacheable reports whether s is under maxCached characters.
func cacheable(s string) bool {
	if len(s) < maxCached {
		return true
	}
	return len(s) < maxCached*utf8.UTFMax && utf8.RuneCountInString(s) < maxCached
}

// put writes to the young generation; sh.mu is held.
func (sh *shard) put(key cacheKey, n int) {
	if len(sh.young) >= generationSize {
		sh.old, sh.young = sh.young, nil
	}
	if sh.young == nil {
		sh.young = make(map[cacheKey]int)
	}
	sh.young[key] = n
}

func (c *cache) key(s string) cacheKey {
	return cacheKey{maphash.String(c.seeds[0], s), maphash.String(c.seeds[1], s)}
}

func (c *cache) shardOf(key cacheKey) *shard { return &c.shards[key[0]%cacheShards] }
