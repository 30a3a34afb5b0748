package memories

import (
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// hit is a memory that a search found.
type hit struct {
	id    core.MemoryID
	score float32
}

// compareHits orders hits by score, equal ones by age, newest first.
func compareHits(a, b hit) int {
	switch {
	case a.score > b.score:
		return -1
	case a.score < b.score:
		return 1
	default:
		return strings.Compare(string(b.id), string(a.id))
	}
}

// nearest collects the best hits of a search. One goroutine owns it.
type nearest struct {
	limit    int
	minScore float32 // hits below it are dropped
	hits     []hit   // the best first
	searched int     // number of compared memories
}

// addHit adds the hit if it is among the best ones.
func (n *nearest) addHit(id core.MemoryID, score float32) {
	h := hit{id, score}
	if len(n.hits) == n.limit {
		if compareHits(h, n.hits[n.limit-1]) > 0 {
			return
		}
		n.hits = n.hits[:n.limit-1]
	}
	at, _ := slices.BinarySearchFunc(n.hits, h, compareHits)
	n.hits = slices.Insert(n.hits, at, h)
	if len(n.hits) == n.limit {
		n.minScore = n.hits[n.limit-1].score // newer ones with the same score still get in
	}
}

// compareVector adds the memory of a row if it is near enough. One with an invalid vector is
// skipped.
func (n *nearest) compareVector(query []float32, v core.MemoryVector) {
	if !llm.IsUnitVector(v.Vector, len(query)) {
		return
	}
	n.searched++
	if score := llm.DotProduct(query, v.Vector); score >= n.minScore {
		n.addHit(v.ID, score)
	}
}
