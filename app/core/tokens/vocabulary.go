package tokens

import (
	_ "embed"
	"hash/maphash"
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
