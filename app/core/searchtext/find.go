package searchtext

import (
	"bytes"
	"math/bits"
	"slices"
)

// Span is a piece of a text, in bytes.
type Span struct {
	Start, End int
	term       int
}

// Bounds of the spans of one text. More spans of a frequent term are no use.
const (
	enoughSpans = 50    // with every term found, the scan stops
	maxSpans    = 1_000 // are stored until then
)

// Find reports whether the query matches the text, and returns the places of its terms:
// in order, without overlaps, not many more than 50. Its time is linear in the size of
// the text for every query.
func (q Query) Find(text string) ([]Span, bool) {
	f := newFinder(q)
	scanTokens(text, f.checkToken)
	if !f.isFound() {
		return nil, false
	}
	return mergeSpans(f.spans), true
}

// isFound reports whether the text matches, after its last token.
func (f *finder) isFound() bool { return !f.excluded && f.found == f.wanted }

// finder finds the terms of a query. Each word of each term has a bit; the bits of a term
// are consecutive. After each word of the text, state has the bit of a term's word set if
// the term matches up to that word (the Shift-And algorithm).
type finder struct {
	terms            []Term
	exact            map[string]uint64 // by word: the bits that it matches
	prefixes         []prefix
	first, last      uint64 // the bits of first and of last words
	single           uint64 // the bits of terms of one word
	term             [MaxWords]int
	wanted           uint64 // the terms that must be present, a bit each
	hasExcludedTerms bool   // some terms must be absent

	state    uint64
	at       int           // words read
	starts   [MaxWords]int // of the last words
	found    uint64        // the wanted terms that were found
	excluded bool          // an excluded term was found
	spans    []Span
}

type prefix struct {
	text []byte
	bit  uint64
}

// newFinder returns the finder of a query. It finds nothing of a query with more than MaxWords
// words.
func newFinder(q Query) *finder {
	f := &finder{terms: q.Terms, exact: map[string]uint64{}}
	if words, _ := q.countWords(); words > MaxWords {
		f.excluded = true
		return f
	}
	bit := 0
	for n, t := range q.Terms {
		if t.Not {
			f.hasExcludedTerms = true
		} else {
			f.wanted |= 1 << n
		}
		f.first |= 1 << bit
		for i, w := range t.Words {
			mask := uint64(1) << bit
			f.term[bit] = n
			bit++
			if t.Prefix && i == len(t.Words)-1 {
				f.prefixes = append(f.prefixes, prefix{[]byte(w), mask})
				continue
			}
			f.exact[w] |= mask
		}
		f.last |= 1 << (bit - 1)
		if t.Whole != "" {
			mask := uint64(1) << bit
			f.exact[t.Whole], f.first, f.last, f.term[bit] = f.exact[t.Whole]|mask, f.first|mask, f.last|mask, n
			bit++
		}
	}
	f.single = f.first & f.last
	return f
}

// checkToken matches a token, and reports whether the next one is needed.
func (f *finder) checkToken(t token) bool {
	mask := f.exact[string(t.text)]
	for _, p := range f.prefixes {
		if bytes.HasPrefix(t.text, p.text) {
			mask |= p.bit
		}
	}
	hits := mask & f.single
	if !t.part {
		f.starts[f.at%MaxWords] = t.start
		f.at++
		f.state = (f.state<<1 | f.first) & mask
		hits = f.state & f.last
	}
	for ; hits != 0; hits &= hits - 1 {
		n := f.term[bits.TrailingZeros64(hits)]
		start := t.start
		if hits&-hits&f.single == 0 {
			start = f.starts[(f.at-len(f.terms[n].Words))%MaxWords]
		}
		if f.terms[n].Not {
			f.excluded = true
			continue
		}
		isNew := f.found>>n&1 == 0
		f.found |= 1 << n
		if isNew || len(f.spans) < maxSpans {
			f.spans = append(f.spans, Span{start, t.end, n})
		}
	}
	return !f.excluded && (f.hasExcludedTerms || f.found != f.wanted || len(f.spans) < enoughSpans)
}

// mergeSpans returns the spans in order; overlapping spans become one.
func mergeSpans(spans []Span) []Span {
	slices.SortFunc(spans, func(a, b Span) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		return b.End - a.End
	})
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.Start < out[n-1].End {
			out[n-1].End = max(out[n-1].End, s.End)
			continue
		}
		out = append(out, s)
	}
	return out
}
