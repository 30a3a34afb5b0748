package memories

import (
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/embed"
)

// hit is a memory that a search found.
type hit struct {
	id    core.MemoryID
	score float32
}

// better is the order of hits: by score, of equals the newest.
func better(a, b hit) int {
	switch {
	case a.score > b.score:
		return -1
	case a.score < b.score:
		return 1
	default:
		return strings.Compare(string(b.id), string(a.id))
	}
}

// nearest keeps the best hits of a search. One goroutine owns it.
type nearest struct {
	limit    int
	least    float32 // nothing below it is kept
	hits     []hit   // the best first
	searched int     // memories that were compared
}

// newNearest keeps at most limit hits with a score of at least minScore.
func newNearest(limit int, minScore float32) *nearest {
	return &nearest{limit: limit, least: minScore}
}

// add keeps the hit if it is among the best so far.
func (n *nearest) add(id core.MemoryID, score float32) {
	h := hit{id, score}
	if len(n.hits) == n.limit {
		if better(h, n.hits[n.limit-1]) > 0 {
			return
		}
		n.hits = n.hits[:n.limit-1]
	}
	at, _ := slices.BinarySearchFunc(n.hits, h, better)
	n.hits = slices.Insert(n.hits, at, h)
	if len(n.hits) == n.limit {
		n.least = n.hits[n.limit-1].score // of its equals the newest still gets in
	}
}

// compare adds the memory of a row if it is near enough. One whose vector is spoiled
// is not compared.
func (n *nearest) compare(query []float32, v core.MemoryVector) {
	if !embed.Sound(v.Vector, len(query)) {
		return
	}
	n.searched++
	if score := embed.Dot(query, v.Vector); score >= n.least {
		n.add(v.ID, score)
	}
}

// merge adds what another part of the search found.
func (n *nearest) merge(other *nearest) {
	n.searched += other.searched
	for _, h := range other.hits {
		if h.score >= n.least {
			n.add(h.id, h.score)
		}
	}
}
