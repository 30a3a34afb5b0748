package llm

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"bobbin/app/core"
)

// Embedder embeds texts.
type Embedder interface {
	// Embed returns one vector for each text, in their order and of length 1. It does
	// not change the texts. With an error it returns no vectors.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Model names the source of the vectors. Vectors of two models cannot be compared.
	Model() string
	// Dimension is how many numbers a vector has; 0 = not known before the first vector.
	Dimension() int
}

// EmbedAccepted returns the vectors of the texts by embed, which may be called more than once; nil for a
// text that the model refuses. Other errors are returned.
func EmbedAccepted(ctx context.Context, embed func(ctx context.Context, texts []string) ([][]float32, error), texts []string) ([][]float32, error) {
	vectors, err := embed(ctx, texts)
	switch {
	case err == nil || !IsKind(err, KindContextLength) && !IsKind(err, KindInvalid) && !IsKind(err, KindContentFilter):
		return vectors, err
	case len(texts) <= 1:
		return make([][]float32, len(texts)), nil
	}
	// At least one of them was refused. Bisection finds it in few calls.
	half := len(texts) / 2
	left, err := EmbedAccepted(ctx, embed, texts[:half])
	if err != nil {
		return nil, err
	}
	right, err := EmbedAccepted(ctx, embed, texts[half:])
	return append(left, right...), err
}

const maxDimension = 16_384

// UnitVector returns a copy of v with length 1. A wrong dimension (0 = any), a value that is not
// a number, and the zero vector are errors.
func UnitVector(v []float32, dimension int) ([]float32, error) {
	if len(v) == 0 || len(v) > maxDimension || dimension > 0 && len(v) != dimension {
		return nil, fmt.Errorf("a vector of %d numbers, want %d", len(v), dimension)
	}
	var sum float64
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) || sum == 0 {
		return nil, fmt.Errorf("a vector of length %g", math.Sqrt(sum))
	}
	scale := 1 / math.Sqrt(sum)
	out := make([]float32, len(v))
	for i, f := range v {
		out[i] = float32(float64(f) * scale)
	}
	return out, nil
}

// DotProduct returns the inner product: for vectors from Unit, their cosine. Both must have the
// same dimension. It always adds in the same order, so that equal vectors have equal
// scores in every database.
func DotProduct(a, b []float32) float32 {
	// Four independent sums are more than twice as fast as one.
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	i := 0
	for ; i+8 <= len(a); i += 8 {
		x, y := a[i:i+8:i+8], b[i:i+8:i+8]
		s0 += x[0]*y[0] + x[4]*y[4]
		s1 += x[1]*y[1] + x[5]*y[5]
		s2 += x[2]*y[2] + x[6]*y[6]
		s3 += x[3]*y[3] + x[7]*y[7]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// SpaceOf returns the vector space of the embedder.
func SpaceOf(e Embedder) core.VectorSpace {
	return core.VectorSpace{Model: e.Model(), Dimension: e.Dimension()}
}

// HashingModel names the vectors of HashEmbedder. A change of the algorithm must change the
// number at its end, so that stored vectors become stale.
const HashingModel = "hashing-384-v1"

const hashingDimension = 384

// HashEmbedder embeds without a model: each word, part of a word, CJK character and pair of
// such characters adds to one of 384 numbers, chosen by its hash. It matches words, not
// meaning. The same text has the same vector on every machine.
type HashEmbedder struct{}

// Model returns HashingModel.
func (HashEmbedder) Model() string { return HashingModel }

// Dimension returns 384.
func (HashEmbedder) Dimension() int { return hashingDimension }

// Embed fails only if ctx is done.
func (HashEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		found := features{}
		var word, cjk []rune
		// NFKC unifies the encodings of a character. A word ends at everything that is neither
		// letter, mark nor number.
		for _, r := range norm.NFKC.String(text) {
			r = unicode.ToLower(r)
			switch {
			case isCJK(r):
				found.addWord(word)
				word, cjk = word[:0], append(cjk, r)
			case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
				found.addCharacters(cjk)
				word, cjk = append(word, r), cjk[:0]
			default:
				found.addWord(word)
				found.addCharacters(cjk)
				word, cjk = word[:0], cjk[:0]
			}
		}
		found.addWord(word)
		found.addCharacters(cjk)
		if len(found) == 0 {
			found.addFeature("only "+text, 1) // only punctuation: similar only to itself
		}
		// The weight of a feature grows with the logarithm of its count.
		var sums [hashingDimension]float64
		for name, at := range found {
			h := fnv.New64a()
			_, _ = h.Write([]byte(name)) // never fails
			sum := mixHash(h.Sum64())
			weight := at.weight * (1 + math.Log(float64(at.count)))
			if sum>>63 == 1 {
				weight = -weight // so that collisions cancel out on average
			}
			// Whole numbers, as the order of a map is random and sums of fractions depend on
			// their order.
			sums[sum%hashingDimension] += math.Round(weight * (1 << 32))
		}
		v := make([]float32, hashingDimension)
		for i, s := range sums {
			v[i] = float32(s)
		}
		unit, err := UnitVector(v, hashingDimension)
		if err != nil { // all values canceled out
			unit = make([]float32, hashingDimension)
			unit[0] = 1
		}
		out[i] = unit
	}
	return out, nil
}

// isCJK reports whether r belongs to a script that is written without spaces, or
// (Hangul) whose words have endings.
func isCJK(r rune) bool {
	return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// features are the features of a text with their weights.
type features map[string]feature

type feature struct {
	count  int
	weight float64
}

func (f features) addFeature(name string, weight float64) {
	f[name] = feature{f[name].count + 1, weight}
}

// maxWord is how many runes of a word count.
const maxWord = 64

// addWord adds a word and its parts of three and four letters, which make its forms and
// misspellings similar. Short words weigh less.
func (f features) addWord(w []rune) {
	if len(w) == 0 {
		return
	}
	w = w[:min(len(w), maxWord)]
	weight := 1.0
	switch {
	case isCommon(string(w)):
		weight = 0.1
	case len(w) < 3 && !unicode.IsNumber(w[0]):
		weight = 0.4
	}
	f.addFeature("w "+string(w), weight)
	if len(w) < 4 || weight < 1 {
		return
	}
	edged := append(append([]rune{'^'}, w...), '$')
	for size := 3; size <= 4; size++ {
		n := len(edged) - size + 1
		for i := range n {
			f.addFeature("p "+string(edged[i:i+size]), 1/math.Sqrt(float64(n)))
		}
	}
}

// addCharacters adds each CJK character and each pair.
func (f features) addCharacters(run []rune) {
	for i, r := range run {
		f.addFeature("c "+string(r), 0.5)
		if i > 0 {
			f.addFeature("c "+string(run[i-1:i+1]), 1)
		}
	}
}

// mixHash spreads similar FNV hashes (the finalizer of MurmurHash3).
func mixHash(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// isCommon reports whether a word is in almost every text of its language.
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
