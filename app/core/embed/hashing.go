package embed

import (
	"context"
	"hash/fnv"
	"math"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// HashingModel names the vectors of Hashing. What changes them changes the number
// at its end, so that old ones count as stale.
const HashingModel = "hashing-384-v1"

const hashingDimension = 384

// Hashing embeds without a model: each word, each part of a word and each CJK
// character or pair of them adds to one of 384 numbers, chosen by its hash. It
// matches words, not meaning. The same text has the same vector on every machine.
type Hashing struct{}

// Model is HashingModel.
func (Hashing) Model() string { return HashingModel }

// Dimension is 384.
func (Hashing) Dimension() int { return hashingDimension }

// Embed never fails but by ctx.
func (Hashing) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		out[i] = hashed(text)
	}
	return out, nil
}

// hashed returns the vector of one text.
func hashed(text string) []float32 {
	found := features{}
	var word, cjk []rune
	// NFKC makes one of the ways to write a character; what a word ends at is
	// neither letter, mark nor number.
	for _, r := range norm.NFKC.String(text) {
		r = unicode.ToLower(r)
		switch {
		case isCJK(r):
			found.word(word)
			word, cjk = word[:0], append(cjk, r)
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
			found.characters(cjk)
			word, cjk = append(word, r), cjk[:0]
		default:
			found.word(word)
			found.characters(cjk)
			word, cjk = word[:0], cjk[:0]
		}
	}
	found.word(word)
	found.characters(cjk)
	if len(found) == 0 {
		found.add("only "+text, 1) // nothing but signs: near to itself alone
	}
	return found.vector()
}

// isCJK reports whether r belongs to a script that is written without spaces, or
// (Hangul) whose words change at their ends.
func isCJK(r rune) bool {
	return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// features are what is in a text: how much each of them weighs.
type features map[string]feature

type feature struct {
	count  int
	weight float64
}

func (f features) add(name string, weight float64) {
	f[name] = feature{f[name].count + 1, weight}
}

// longest is the part of a word that counts; what is longer is no word.
const longest = 64

// word adds a word and its parts of three and four letters, which bring its forms
// and its misspellings near. Short words say little.
func (f features) word(w []rune) {
	if len(w) == 0 {
		return
	}
	w = w[:min(len(w), longest)]
	weight := 1.0
	switch {
	case isCommon(string(w)):
		weight = 0.1
	case len(w) < 3 && !unicode.IsNumber(w[0]):
		weight = 0.4
	}
	f.add("w "+string(w), weight)
	if len(w) < 4 || weight < 1 {
		return
	}
	edged := append(append([]rune{'^'}, w...), '$')
	for size := 3; size <= 4; size++ {
		n := len(edged) - size + 1
		for i := range n {
			f.add("p "+string(edged[i:i+size]), 1/math.Sqrt(float64(n)))
		}
	}
}

// characters adds each CJK character and each pair.
func (f features) characters(run []rune) {
	for i, r := range run {
		f.add("c "+string(r), 0.5)
		if i > 0 {
			f.add("c "+string(run[i-1:i+1]), 1)
		}
	}
}

// vector puts the features into their places. A feature that comes often weighs
// more, but less and less.
func (f features) vector() []float32 {
	var sums [hashingDimension]float64
	for name, at := range f {
		h := fnv.New64a()
		_, _ = h.Write([]byte(name)) // never fails
		sum := mix(h.Sum64())
		weight := at.weight * (1 + math.Log(float64(at.count)))
		if sum>>63 == 1 {
			weight = -weight // so that what falls together by chance cancels out on average
		}
		// In whole steps, as the order of a map is by chance and sums of fractions
		// depend on their order.
		sums[sum%hashingDimension] += math.Round(weight * (1 << 32))
	}
	v := make([]float32, hashingDimension)
	for i, s := range sums {
		v[i] = float32(s)
	}
	unit, err := Unit(v, hashingDimension)
	if err != nil { // all canceled out
		unit = make([]float32, hashingDimension)
		unit[0] = 1
	}
	return unit
}

// mix spreads what FNV leaves near together (the finalizer of MurmurHash3).
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// isCommon reports whether a word is in nearly every text of its language, and so
// tells nothing of this one.
func isCommon(word string) bool {
	switch word {
	case "a", "an", "the", "and", "or", "but", "of", "to", "in", "on", "at", "for", "with", "by", "from", "as", "is", "are", "was", "were", "be",
		"been", "it", "its", "this", "that", "i", "you", "he", "she", "we", "they", "me", "my", "your", "his", "her", "our", "their", "do", "does",
		"did", "has", "have", "had", "not", "no", "what", "which", "who", "when", "where", "how", "there", "so", "if", "can", "will",
		"der", "die", "das", "und", "oder", "ein", "eine", "einen", "einem", "ist", "sind", "war", "im", "am", "zu", "den", "dem", "des",
		"mit", "von", "für", "auf", "ich", "du", "er", "sie", "wir", "ihr", "es", "nicht", "wer", "wie", "wo", "hat", "habe", "mein", "meine",
		"le", "la", "les", "un", "une", "et", "ou", "est", "sont", "dans", "je", "il", "elle", "que", "qui", "pas",
		"el", "los", "las", "una", "y", "o", "del", "en", "son", "con", "por", "para", "yo", "qué":
		return true
	}
	return false
}
