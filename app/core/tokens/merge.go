package tokens

import "math"

// none is the rank of a pair that is not in the vocabulary.
const none = math.MaxUint32

// maxToken is the length of the longest token of cl100k_base, in bytes.
const maxToken = 128

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
	i := p.at()
	if m.links[i].rank != p.rank() {
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
		m.heap.push(newPair(rank, i))
	}
}

// rankOf returns the rank of the token that the part at i and the next one make.
func (m *merger) rankOf(i int32) uint32 {
	next := m.links[i].next
	if next < 0 || m.links[next].next < 0 || m.links[next].next-i > maxToken {
		return none
	}
	if rank, ok := m.ranks[m.piece[i:m.links[next].next]]; ok {
		return uint32(rank)
	}
	return none
}

// pair is a candidate: the rank of what two neighbors make in the upper half, and
// where the first begins in the lower. The smallest is the one to be merged: the
// lowest rank, the leftmost of equals.
type pair uint64

func newPair(rank uint32, at int32) pair { return pair(rank)<<32 | pair(at) }

func (p pair) rank() uint32 { return uint32(p >> 32) }
func (p pair) at() int32    { return int32(p & math.MaxUint32) }

// pairHeap is a heap with the smallest pair on top. Each has four children, which
// share a cache line: twice as fast as two, and popping is where the time goes.
type pairHeap []pair

const children = 4

func (h *pairHeap) push(p pair) {
	*h = append(*h, p)
	s := *h
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / children
		if s[parent] <= p {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = p
}

func (h *pairHeap) pop() pair {
	s := *h
	top, moved := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return top
	}
	i := 0
	for {
		first := children*i + 1
		if first >= len(s) {
			break
		}
		least := first
		for j := first + 1; j < min(first+children, len(s)); j++ {
			if s[j] < s[least] {
				least = j
			}
		}
		if s[least] >= moved {
			break
		}
		s[i] = s[least]
		i = least
	}
	s[i] = moved
	return top
}
