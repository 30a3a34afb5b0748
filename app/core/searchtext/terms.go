package searchtext

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"
	"sort"
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

// count returns how often the term occurs. It accepts any bytes.
func (t Terms) count(hash uint32) int {
	i, found := sort.Find(len(t)/termSize, func(i int) int { return cmp.Compare(hash, binary.BigEndian.Uint32(t[i*termSize:])) })
	if !found {
		return 0
	}
	return int(t[i*termSize+4])
}

// StemPrefix marks a stem in an index of words. It is stored only where it differs from its
// word. No word of a text begins with it.
const StemPrefix = "_w"

// addTerms sets the document's stems, terms and length. Parts may repeat.
func (d *Document) addTerms(parts []string) {
	lang := languageOf(d.Words)
	stems := map[string]string{}
	counts := map[uint32]int{}
	for _, w := range d.Words {
		stem, known := stems[w]
		if !known {
			stem = lang.stemOf(w)
			stems[w] = stem
		}
		counts[termHash(stem)]++
		if !lang.stop[w] {
			d.Length++
		}
	}
	for _, p := range parts {
		if h := termHash(p); counts[h] < 255 {
			counts[h]++
		}
	}
	known := map[string]bool{}
	for _, w := range d.Words {
		if stem := stems[w]; stem != w && !known[stem] {
			known[stem] = true
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
