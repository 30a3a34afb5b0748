package searchtext

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// Limits of a question.
const (
	MaxQuestion = 10 << 10 // bytes
	maxGroups   = 64       // further words do not count
	maxForms    = 32       // of a word; further ones do not count
)

// Question is a parsed query for ranked search: no text needs to have all of its words, and
// texts with more of the rare ones come first.
type Question struct {
	// Must is what every text must have or must not have: phrases in quotes, and -words. It
	// may have no terms. Quotes in a sentence with a question mark at its end name something,
	// such as a book: the phrase only counts.
	Must Query
	// Groups are what counts, at least one.
	Groups []Group
}

// Group is a word of a question: a text that has one of its forms has the word.
type Group struct {
	// Words are the words of an index with one of which a text has the group, or perhaps has.
	Words []string
	// Term, if set, is what the text must have instead: several words, or a prefix. Terms of
	// texts do not tell whether they have it.
	Term *Term
	// Stop says that it is a stop word, and so are all words of the question.
	Stop   bool
	hashes []uint32
}

// Count returns how often a text with the terms has the word of the group. 0 if it has Term.
func (g Group) Count(t Terms) int {
	n := 0
	for _, h := range g.hashes {
		i, found := sort.Find(len(t)/termSize, func(i int) int { return cmp.Compare(h, binary.BigEndian.Uint32(t[i*termSize:])) })
		if found {
			n = max(n, int(t[i*termSize+4]))
		}
	}
	return n
}

// ParseQuestion parses a question as people write it. Stop words are left out unless there
// is nothing else. core.ErrInvalid is as of Parse.
func ParseQuestion(text string) (Question, error) {
	if len(text) > MaxQuestion {
		return Question{}, invalidQuery(fmt.Sprintf("a query may have at most %d bytes, this one has %d; use fewer words", MaxQuestion, len(text)))
	}
	var q Question
	unquoted := false // has words that are not in quotes
	b := questionBuilder{lang: languageOf(Text(text).Words)}
	p := parser{rest: text}
	for p.rest != "" {
		from := p.rest
		p.terms, p.known = nil, nil
		if !p.parseNext() {
			break
		}
		chunk := strings.TrimSpace(from[:len(from)-len(p.rest)])
		first, _ := utf8.DecodeRuneInString(strings.TrimPrefix(chunk, "-"))
		quoted := isQuote(first)
		for _, t := range p.terms {
			if t.Not || quoted {
				q.Must.Terms = append(q.Must.Terms, t)
			}
			if !t.Not {
				b.addTerm(t, !quoted && isJoined(chunk, t))
				unquoted = unquoted || !quoted
			}
		}
	}
	if last, _ := utf8.DecodeLastRuneInString(strings.TrimSpace(text)); unquoted && strings.ContainsRune("?？؟", last) {
		q.Must.Terms = slices.DeleteFunc(q.Must.Terms, func(t Term) bool {
			if !t.Not && len(t.Words) > 1 && len(t.Words) <= maxIdentifier {
				b.addPhrase(t)
			}
			return !t.Not
		})
	}
	if q.Groups = append(b.words, b.phrases...); len(q.Groups) == 0 {
		q.Groups = b.stops
	}
	switch {
	case len(q.Groups) == 0 && len(q.Must.Terms) == 0:
		return q, invalidQuery("the query has no word; enter at least one letter, digit or emoji: punctuation is not searched")
	case len(q.Groups) == 0:
		return q, invalidQuery("the query only excludes words; add a word to search for")
	}
	return q, q.Must.checkLimits()
}

// isJoined reports whether the words of a term also count as a phrase: an identifier such
// as ERR_CONN_RESET, or characters without spaces, but not "don't".
func isJoined(chunk string, t Term) bool {
	first, _ := utf8.DecodeRuneInString(t.Words[0])
	return len(t.Words) > 1 && len(t.Words) <= maxIdentifier && (kindOf(first) == unspaced || !strings.ContainsAny(chunk, "'’ʼ"))
}

// maxIdentifier is the longest phrase, in words, that a query has without quotes.
const maxIdentifier = 6

// questionBuilder collects the groups of a question.
type questionBuilder struct {
	lang    *language
	words   []Group
	stops   []Group // of stop words
	phrases []Group
	known   map[string]bool
	byHash  map[uint32]int // the first of the words with a form, from 1
}

// addTerm adds the words of a term, and the term itself if it is a prefix or isPhrase. Of a
// term that is too long for a phrase, the prefix alone counts.
func (b *questionBuilder) addTerm(t Term, isPhrase bool) {
	words := t.Words
	if t.Prefix {
		last := len(words) - 1
		words, isPhrase = words[:last], true
		if last >= maxIdentifier {
			t.Words = t.Words[last:]
		}
	}
	for _, w := range words {
		b.addWord(w)
	}
	if t.Whole != "" {
		b.addWord(t.Whole)
	}
	if isPhrase {
		b.addPhrase(t)
	}
}

// addPhrase adds the term itself, not its words.
func (b *questionBuilder) addPhrase(t Term) {
	if key := strings.Join(t.Words, " ") + fmt.Sprint(t.Prefix); len(b.phrases) < MaxPhrases && !b.isKnown(key) {
		b.phrases = append(b.phrases, Group{Term: &t})
	}
}

// addWord adds a word, or its forms to the first word with one of them.
func (b *questionBuilder) addWord(word string) {
	isStop := b.lang.stop[word]
	if !isStop && len(b.words) == maxGroups || isStop && len(b.stops) == maxGroups || b.isKnown("'"+word) {
		return
	}
	// The word, and its stems.
	g := Group{Words: []string{word}, hashes: []uint32{termHash(word)}}
	for i := range languages {
		stem := languages[i].stemOf(word)
		if h := termHash(stem); !slices.Contains(g.hashes, h) {
			g.hashes = append(g.hashes, h)
			g.Words = append(g.Words, stem)
		}
		if marked := StemPrefix + stem; !slices.Contains(g.Words, marked) {
			g.Words = append(g.Words, marked)
		}
	}
	if isStop {
		g.Stop = true
		b.stops = append(b.stops, g)
		return
	}
	if b.byHash == nil {
		b.byHash = map[uint32]int{}
	}
	n := len(b.words) + 1
	for _, h := range g.hashes {
		if known := b.byHash[h]; known > 0 {
			n = min(n, known)
		}
	}
	if n > len(b.words) {
		b.words = append(b.words, g)
	} else if known := &b.words[n-1]; len(known.Words) < maxForms {
		known.hashes, known.Words = appendNew(known.hashes, g.hashes), appendNew(known.Words, g.Words)
	} else {
		return
	}
	for _, h := range g.hashes {
		if known := b.byHash[h]; known == 0 || n < known {
			b.byHash[h] = n
		}
	}
}

// appendNew appends what the list does not have.
func appendNew[T comparable](list, more []T) []T {
	for _, v := range more {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// isKnown remembers the key, and reports whether it was known.
func (b *questionBuilder) isKnown(key string) bool {
	if b.known == nil {
		b.known = map[string]bool{}
	}
	known := b.known[key]
	b.known[key] = true
	return known
}

// FindWords returns the places in a text of what the question asks for, in order, without
// overlaps. It reports false if the text does not have what it must. It reads the text once.
func (q Question) FindWords(text string) ([]Span, bool) {
	f := wordFinder{groups: map[uint32]int{}, known: map[string]int{}}
	var phrases Query
	var groups []int
	for i, g := range q.Groups {
		for _, h := range g.hashes {
			f.groups[h] = i + 1
		}
		if g.Term != nil {
			phrases.Terms = append(phrases.Terms, *g.Term)
			groups = append(groups, i+1)
		}
	}
	must, also := newFinder(q.Must), newFinder(phrases)
	readMust, readAlso, readWords := len(q.Must.Terms) > 0, len(phrases.Terms) > 0, true
	scanTokens(text, func(t token) bool {
		readMust = readMust && must.checkToken(t)
		readAlso = readAlso && also.checkToken(t)
		readWords = readWords && f.addToken(t)
		return !must.excluded && (readMust || readAlso || readWords)
	})
	if !must.isFound() {
		return nil, false
	}
	for i := range also.spans {
		also.spans[i].term = groups[also.spans[i].term]
	}
	return mergeSpans(slices.Concat(must.spans, also.spans, f.spans)), true
}

// wordFinder finds the words of groups.
type wordFinder struct {
	groups map[uint32]int // by hash
	known  map[string]int // the groups of words of the text; 0 = none
	spans  []Span
}

func (f *wordFinder) addToken(t token) bool {
	group, known := f.known[string(t.text)]
	if !known {
		word := string(t.text)
		group = f.groups[termHash(word)]
		for i := 0; i < len(languages) && group == 0 && !t.part; i++ {
			group = f.groups[termHash(languages[i].stemOf(word))]
		}
		f.known[word] = group
	}
	if group > 0 {
		f.spans = append(f.spans, Span{t.start, t.end, group})
	}
	return len(f.spans) < maxSpans
}
