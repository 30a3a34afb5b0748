package tokens

import (
	_ "embed"
	"hash/maphash"
	"math"
	"sync"

	"github.com/pkoukk/tiktoken-go"
)

// Encoding is the name of the encoding that a Counter counts in.
const Encoding = tiktoken.MODEL_CL100K_BASE

// vocabularyData has the tokens of cl100k_base in the order of their ranks, each as a byte with
// its length and its bytes. It is made of the file that OpenAI publishes, as tiktoken-go-loader
// has it: go test ./app/core/tokens -run TestVocabulary -update.
//
//go:embed data/cl100k_base.bin
var vocabularyData string

// vocabulary is a set of tokens with their ranks. It never changes. tiktoken-go's maps of it take
// ten times the memory.
type vocabulary struct {
	starts []uint32 // of each token in vocabularyData, by rank: the position of its length
	slots  []uint32 // hash table with open addressing: rank + 1, 0 = empty
	seed   maphash.Seed
}

// tableSize is the number of slots, a power of two: more than twice the tokens.
const tableSize = 1 << 18

// The vocabulary of the process, shared by all counters: 1.5 MB.
//
//nolint:gochecknoglobals // immutable
var sharedVocabulary = sync.OnceValue(loadVocabulary)

// loadVocabulary builds the tables.
func loadVocabulary() *vocabulary {
	v := &vocabulary{slots: make([]uint32, tableSize), seed: maphash.MakeSeed()}
	for at := 0; at < len(vocabularyData); at += 1 + int(vocabularyData[at]) {
		v.starts = append(v.starts, uint32(at))
		slot := v.slotOf(tokenAt(uint32(at)))
		for v.slots[slot] != 0 {
			slot = (slot + 1) % tableSize
		}
		v.slots[slot] = uint32(len(v.starts))
	}
	return v
}

// tokenAt returns the token at a position of vocabularyData.
func tokenAt(at uint32) string { return vocabularyData[at+1 : at+1+uint32(vocabularyData[at])] }

func (v *vocabulary) slotOf(token string) uint64 { return maphash.String(v.seed, token) % tableSize }

// rankOf returns the rank of a token, noRank if there is no such token.
func (v *vocabulary) rankOf(token string) uint32 {
	for slot := v.slotOf(token); v.slots[slot] != 0; slot = (slot + 1) % tableSize {
		if rank := v.slots[slot] - 1; tokenAt(v.starts[rank]) == token {
			return rank
		}
	}
	return noRank
}

// countTokens returns the number of tokens of the text, which must be valid UTF-8.
func (v *vocabulary) countTokens(text string) int {
	n := 0
	m := merger{vocabulary: v}
	for text != "" {
		piece := text[:pretokenLength(text)]
		text = text[len(piece):]
		if len(piece) <= maxToken && v.rankOf(piece) != noRank {
			n++
		} else {
			n += m.countTokens(piece)
		}
	}
	return n
}

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
