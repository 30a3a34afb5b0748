package searchtext

import (
	"bytes"
	"slices"
)

// Span is a piece of a text, in bytes.
type Span struct {
	Start, End int
	term       int
}

// Find reports whether the query finds the text, and where what it looks for
// stands: in order, without overlaps.
func (q Query) Find(text string) ([]Span, bool) {
	f := newFinder(q)
	scan(text, f.see)
	var spans []Span
	for i, t := range q.Terms {
		found := f.places(i, t)
		if t.Not == (len(found) > 0) {
			return nil, false
		}
		spans = append(spans, found...)
	}
	return merged(spans), true
}

// finder notes where the words of a query stand. Each word of each term has a bit.
type finder struct {
	exact    map[string]uint64
	prefixes []prefix
	alone    uint64 // the bits of terms of one word
	bits     []int  // the first bit of each term
	at       int    // words seen
	words    []sighting
	parts    []sighting
}

type prefix struct {
	text []byte
	bit  uint64
}

// sighting is a token that some terms ask for.
type sighting struct {
	at         int
	mask       uint64
	start, end int
}

func newFinder(q Query) *finder {
	f := &finder{exact: map[string]uint64{}}
	bit := 0
	for _, t := range q.Terms {
		f.bits = append(f.bits, bit)
		for i, w := range t.Words {
			mask := uint64(1) << bit
			bit++
			if len(t.Words) == 1 {
				f.alone |= mask
			}
			if t.Prefix && i == len(t.Words)-1 {
				f.prefixes = append(f.prefixes, prefix{[]byte(w), mask})
				continue
			}
			f.exact[w] |= mask
		}
	}
	return f
}

// see notes a token.
func (f *finder) see(t token) {
	mask := f.exact[string(t.text)]
	for _, p := range f.prefixes {
		if bytes.HasPrefix(t.text, p.text) {
			mask |= p.bit
		}
	}
	if t.part {
		if mask&f.alone != 0 {
			f.parts = append(f.parts, sighting{mask: mask & f.alone, start: t.start, end: t.end})
		}
		return
	}
	if mask != 0 {
		f.words = append(f.words, sighting{at: f.at, mask: mask, start: t.start, end: t.end})
	}
	f.at++
}

// places returns where the i-th term stands.
func (f *finder) places(i int, t Term) []Span {
	var out []Span
	n := len(t.Words)
	for first := 0; first+n <= len(f.words); first++ {
		fits := true
		for k := range n {
			s := f.words[first+k]
			fits = fits && s.at == f.words[first].at+k && s.mask>>(f.bits[i]+k)&1 == 1
		}
		if fits {
			out = append(out, Span{f.words[first].start, f.words[first+n-1].end, i})
		}
	}
	for _, s := range f.parts {
		if n == 1 && s.mask>>f.bits[i]&1 == 1 {
			out = append(out, Span{s.start, s.end, i})
		}
	}
	return out
}

// merged returns the spans in order; those that overlap become one.
func merged(spans []Span) []Span {
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
