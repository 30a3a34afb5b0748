package nodes

import (
	"slices"

	"bobbin/app/core"
)

// maxMisses bounds the cache misses in the report of a run.
const maxMisses = 20

// withMiss returns the measures with a cache miss of the model call; nil = there was none.
func (m Measures) withMiss(miss *core.CacheMiss, call int) Measures {
	if miss != nil && len(m.Misses) < maxMisses {
		found := *miss
		found.Call = call
		m.Misses = append(slices.Clone(m.Misses), found)
	}
	return m
}
