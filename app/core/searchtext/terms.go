package searchtext

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"
)

// Terms are the terms of a text with how often each occurs, for ranking: records of five
// bytes in ascending order, the hash of a term and its number of occurrences, at most 255.
// The term of a word is its stem; parts of words are terms of their own.
type Terms []byte

const termSize = 5

// termHash returns the hash of a term. Both databases store it: it must not change.
func termHash(term string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(term)) // never fails
	return h.Sum32()
}

// StemPrefix marks a stem in an index of words. It is stored only where it differs from its
// word. No word of a text begins with it.
const StemPrefix = "_w"

// addTerms sets the document's parts, stems, terms and length.
func (d *Document) addTerms(all []term) {
	lang := languageOf(d.Words)
	counts, stems := make(map[uint32]int, len(all)), map[string]bool{}
	for _, t := range all {
		if t.parts > 0 {
			counts[termHash(t.text)] += t.parts
		}
		if t.words == 0 {
			d.Parts = append(d.Parts, t.text)
			continue
		}
		if !lang.stop[t.text] {
			d.Length += t.words
		}
		stem := lang.stemOf(t.text)
		counts[termHash(stem)] += t.words
		if stem != t.text && !stems[stem] {
			stems[stem] = true
			d.Stems = append(d.Stems, StemPrefix+stem)
		}
	}
	hashes := slices.AppendSeq(make([]uint32, 0, len(counts)), maps.Keys(counts))
	slices.Sort(hashes)
	t := make(Terms, 0, len(hashes)*termSize)
	for _, h := range hashes {
		t = append(binary.BigEndian.AppendUint32(t, h), byte(min(counts[h], 255)))
	}
	d.Terms = t
}
