package tokens

import "math"

// noRank is the rank of a pair that is not in the vocabulary.
const noRank = math.MaxUint32

// maxToken is the length of the longest token of cl100k_base, in bytes.
const maxToken = 128

// link is a boundary between two parts of a piece, in a doubly linked list. rank is the
// rank of the token that this part and the next would form.
type link struct {
	prev, next int32
	rank       uint32
}

// merger merges the bytes of one piece after another by byte-pair encoding: while any two
// neighbors form a token, it merges the pair of the lowest rank, the leftmost first. tiktoken-go
// does the same with a search instead of a heap: O(n²) instead of O(n log n).
type merger struct {
	vocabulary *vocabulary
	piece      string
	links      []link
	heap       pairHeap
}

// countTokens returns the number of tokens of the piece, which must be shorter than 2 GiB.
func (m *merger) countTokens(piece string) int {
	m.piece, m.links, m.heap = piece, m.links[:0], m.heap[:0]
	for i := range int32(len(piece)) + 1 {
		m.links = append(m.links, link{prev: i - 1, next: i + 1, rank: noRank})
	}
	m.links[len(piece)].next = -1
	for i := range len(piece) {
		m.offerPair(int32(i))
	}
	count := len(piece)
	for len(m.heap) > 0 {
		if m.mergePair(m.heap.pop()) {
			count--
		}
	}
	return count
}

// mergePair joins the pair, unless one of its parts was merged with another since
// offerPair.
func (m *merger) mergePair(p pair) bool {
	i := int32(p & math.MaxUint32)
	if m.links[i].rank != uint32(p>>32) {
		return false
	}
	gone := m.links[i].next
	after := m.links[gone].next
	m.links[gone].rank = noRank
	m.links[i].next = after
	m.links[after].prev = i
	m.offerPair(i)
	if before := m.links[i].prev; before >= 0 {
		m.offerPair(before)
	}
	return true
}

// offerPair stores the rank of the pair that begins at i, and pushes it onto the heap.
func (m *merger) offerPair(i int32) {
	rank, next := uint32(noRank), m.links[i].next
	if next >= 0 && m.links[next].next >= 0 && m.links[next].next-i <= maxToken {
		rank = m.vocabulary.rankOf(m.piece[i:m.links[next].next])
	}
	m.links[i].rank = rank
	if rank != noRank {
		m.heap.push(pair(rank)<<32 | pair(i))
	}
}

// pair is a candidate to merge: its rank in the upper half, the start of its first part
// in the lower. The smallest is the next to merge: the lowest rank, the leftmost of
// equals.
type pair uint64

// pairHeap is a heap with the smallest pair on top. Each node has four children, which
// share a cache line: twice as fast as two, as most of the time goes into pop.
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
		smallest := first
		for j := first + 1; j < min(first+children, len(s)); j++ {
			if s[j] < s[smallest] {
				smallest = j
			}
		}
		if s[smallest] >= moved {
			break
		}
		s[i] = s[smallest]
		i = smallest
	}
	s[i] = moved
	return top
}
