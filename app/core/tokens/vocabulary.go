package tokens

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"sync"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
	"github.com/pkoukk/tiktoken-go-loader/assets"
)

const (
	vocabularyFile = "cl100k_base.tiktoken"
	// vocabularySHA256 is the digest that OpenAI publishes with the file
	// (tiktoken_ext/openai_public.py).
	vocabularySHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
	// pattern cuts a text into pre-tokens (the same source).
	pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

const (
	maxPiece   = 256     // bytes of a pre-token that tiktoken-go gets
	maxSegment = 4 << 10 // bytes of neighbors that it gets at once
)

// vocabulary is cl100k_base, ready for use. It never changes.
type vocabulary struct {
	ranks   map[string]int
	library *tiktoken.Tiktoken
}

// The vocabulary of the process: 40 MB that never change, so that one is enough for
// all counters.
//
//nolint:gochecknoglobals // nobody can change them
var (
	published = sync.OnceValue(checkVocabulary)
	loaded    = sync.OnceValue(func() *vocabulary {
		v, err := loadVocabulary()
		if err != nil {
			panic("tokens: " + err.Error()) // its digest was right: cannot happen
		}
		return v
	})
)

// checkVocabulary returns an error if the embedded file is not the published one.
func checkVocabulary() error {
	data, err := assets.Assets.ReadFile(vocabularyFile)
	if err != nil {
		return fmt.Errorf("read the embedded vocabulary: %w", err)
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != vocabularySHA256 {
		return fmt.Errorf("the embedded vocabulary %s is not the published one: its SHA-256 is %s", vocabularyFile, got)
	}
	return nil
}

// loadVocabulary parses the embedded file. It takes about 0.1 s and 40 MB.
func loadVocabulary() (*vocabulary, error) {
	ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(vocabularyFile)
	if err != nil {
		return nil, fmt.Errorf("load the embedded vocabulary: %w", err)
	}
	// No special tokens: their text is counted as plain text (CONTEXT § 10, 21).
	bpe, err := tiktoken.NewCoreBPE(ranks, map[string]int{}, pattern)
	if err != nil {
		return nil, fmt.Errorf("build the encoder: %w", err)
	}
	encoding := &tiktoken.Encoding{Name: tiktoken.MODEL_CL100K_BASE, PatStr: pattern, MergeableRanks: ranks}
	return &vocabulary{ranks: ranks, library: tiktoken.NewTiktoken(bpe, encoding, map[string]any{})}, nil
}

// count returns how many tokens the text is, which must be valid UTF-8.
func (v *vocabulary) count(text string) int {
	n := 0
	for part, way := range v.split(text) {
		switch way {
		case whole:
			n++
		case byLibrary:
			n += len(v.library.EncodeOrdinary(part))
		case byHeap:
			n += mergeCount(part, v.ranks)
		}
	}
	return n
}

// way is how a part of a text is counted.
type way uint8

const (
	whole     way = iota // one pre-token that is one token
	byLibrary            // pre-tokens of at most maxPiece bytes, at most maxSegment together
	byHeap               // one longer pre-token
)

// split cuts a text into parts, in order and without a gap, always between two
// pre-tokens. Nothing in the pattern looks back, and nothing that it sees ahead
// changes what a pre-token at the end of a part is, so a part alone is cut as it
// is within the text.
func (v *vocabulary) split(text string) iter.Seq2[string, way] {
	return func(yield func(string, way) bool) {
		start, pos := 0, 0 // text[start:pos] waits for the library
		for pos < len(text) {
			size := pretoken(text[pos:])
			how := v.wayOf(text[pos : pos+size])
			if how == byLibrary && pos+size-start <= maxSegment {
				pos += size
				continue
			}
			if start < pos && !yield(text[start:pos], byLibrary) {
				return
			}
			start = pos
			pos += size
			if how == byLibrary {
				continue
			}
			if !yield(text[start:pos], how) {
				return
			}
			start = pos
		}
		if start < pos {
			yield(text[start:pos], byLibrary)
		}
	}
}

// wayOf returns how one pre-token is counted.
func (v *vocabulary) wayOf(piece string) way {
	if len(piece) > maxPiece {
		return byHeap // no token is that long
	}
	if _, ok := v.ranks[piece]; ok {
		return whole
	}
	return byLibrary
}
