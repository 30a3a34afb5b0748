package tokens

import "math"

// none is the rank of a pair that is not in the vocabulary.
const none = math.MaxUint32

// link is a boundary between two parts of a piece, in a doubly linked list. rank
// is that of the token which this part and the next would make.
type link struct {
	prev, next int32
	rank       uint32
}

// merger merges the bytes of one piece by byte-pair encoding: while any two
// neighbors make a token, the pair of the lowest rank is merged, the leftmost
// first. This is what tiktoken-go does too, with a heap in the place of a search,
// so that n bytes take O(n log n) and not O(n²).
type merger struct {
	ranks map[string]int
	piece string
	links []link
	heap  pairHeap
}

// mergeCount returns how many tokens the piece is. It must be shorter than 2 GiB.
func mergeCount(piece string, ranks map[string]int) int {
	m := merger{ranks: ranks, piece: piece, links: make([]link, len(piece)+1), heap: make(pairHeap, 0, len(piece))}
	for i := range m.links {
		m.links[i] = link{prev: int32(i) - 1, next: int32(i) + 1, rank: none}
	}
	m.links[len(piece)].next = -1
	for i := range len(piece) {
		m.offer(int32(i))
	}
	count := len(piece)
	for len(m.heap) > 0 {
		if m.merge(m.heap.pop()) {
			count--
		}
	}
	return count
}

// merge joins the pair, unless one of its parts has been merged with another
// since it was offered.
func (m *merger) merge(p pair) bool {
	i := p.at
	if m.links[i].rank != p.rank {
		return false
	}
	gone := m.links[i].next
	after := m.links[gone].next
	m.links[gone].rank = none
	m.links[i].next = after
	m.links[after].prev = i
	m.offer(i)
	if before := m.links[i].prev; before >= 0 {
		m.offer(before)
	}
	return true
}

// offer notes the rank of the pair that begins at i, and puts it into the heap.
func (m *merger) offer(i int32) {
	rank := m.rankOf(i)
	m.links[i].rank = rank
	if rank != none {
		m.heap.push(pair{rank: rank, at: i})
	}
}

// rankOf returns the rank of the token that the part at i and the next one make.
func (m *merger) rankOf(i int32) uint32 {
	next := m.links[i].next
	if next < 0 || m.links[next].next < 0 {
		return none
	}
	if rank, ok := m.ranks[m.piece[i:m.links[next].next]]; ok {
		return uint32(rank)
	}
	return none
}

// pair is a candidate: two neighbors, the first of which begins at at.
type pair struct {
	rank uint32
	at   int32
}

// pairHeap is a binary heap, the lowest rank on top, the leftmost of equals
// first. It is typed because container/heap allocates at every push.
type pairHeap []pair

func (h pairHeap) less(a, b int) bool {
	return h[a].rank < h[b].rank || h[a].rank == h[b].rank && h[a].at < h[b].at
}

func (h *pairHeap) push(p pair) {
	*h = append(*h, p)
	s := *h
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s.less(i, parent) {
			return
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

func (h *pairHeap) pop() pair {
	s := *h
	top := s[0]
	last := len(s) - 1
	s[0] = s[last]
	s = s[:last]
	*h = s
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(s) {
			return top
		}
		if child+1 < len(s) && s.less(child+1, child) {
			child++
		}
		if !s.less(child, i) {
			return top
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}
