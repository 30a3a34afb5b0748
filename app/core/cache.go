package core

import (
	"maps"
	"sync"
)

// Cache is a map of bounded size: when it is full, it is cleared. Safe for concurrent use.
type Cache[K comparable, V any] struct {
	size    int
	mu      sync.Mutex
	entries map[K]V // guarded by mu
}

// NewCache returns an empty cache of at most size entries.
func NewCache[K comparable, V any](size int) *Cache[K, V] {
	return &Cache[K, V]{size: size, entries: map[K]V{}}
}

// Get returns the key's value; false if there is none.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.entries[key]
	return v, ok
}

// Set sets the key's value.
func (c *Cache[K, V]) Set(key K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= c.size {
		clear(c.entries)
	}
	c.entries[key] = v
}

// DeleteFunc removes the entries for which del returns true.
func (c *Cache[K, V]) DeleteFunc(del func(K, V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.entries, del)
}

// Delete removes the key.
func (c *Cache[K, V]) Delete(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
}
