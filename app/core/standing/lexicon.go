package standing

import (
	_ "embed" // the lexicon is a file of its own
	"slices"
	"strings"
	"sync"
	"unicode"
)

//go:embed lexicon.txt
var lexiconText string

// firstTag is the tag of the first concept. A tag is a letter, so that a sentence is a string
// of tags, and the grammar has regular expressions of them.
const firstTag = 'Ā'

// Tags of what is not in the lexicon.
const (
	tagOther  = 'x' // a word that no concept has
	tagNumber = '0'
	tagComma  = ','
	tagQuote  = 'q' // quoted text
)

// maxPhrase is the length of the longest phrase of the lexicon, in words.
const maxPhrase = 7

// node is what may follow the words read so far in the phrases of a language.
type node struct {
	words map[string]*node // by the whole next word
	stems map[string]*node // by its beginning: "allerg*"
	verbs map[string]*node // by its beginning, before an ending of orders: "schreib~"
	tag   rune             // of the phrase that ends here; 0 = none does
}

func newNode() *node {
	return &node{words: map[string]*node{}, stems: map[string]*node{}, verbs: map[string]*node{}}
}

// add enters a phrase. The first concept that has a phrase keeps it.
func (n *node) add(phrase string, tag rune) {
	for word := range strings.SplitSeq(phrase, "_") {
		next, key := n.words, word
		if stem, ok := strings.CutSuffix(word, "*"); ok {
			next, key = n.stems, stem
		} else if stem, ok := strings.CutSuffix(word, "~"); ok {
			next, key = n.verbs, stem
		}
		if next[key] == nil {
			next[key] = newNode()
		}
		n = next[key]
	}
	if n.tag == 0 {
		n.tag = tag
	}
}

// longest returns the tag of the longest phrase at the beginning of the words, and its length
// in words; 0 = no phrase begins there.
func (n *node) longest(words []string, endings map[string]bool) (tag rune, length int) {
	tag = n.tag
	if len(words) == 0 {
		return tag, 0
	}
	for _, next := range n.after(words[0], endings) {
		if t, more := next.longest(words[1:], endings); t != 0 && more+1 > length {
			tag, length = t, more+1
		}
	}
	return tag, length
}

// after returns the nodes that the word leads to, the most exact first.
func (n *node) after(word string, endings map[string]bool) []*node {
	var out []*node
	if next := n.words[word]; next != nil {
		out = append(out, next)
	}
	if len(n.stems)+len(n.verbs) == 0 {
		return out
	}
	for i := min(len(word), maxWord); i > 1; i-- {
		if next := n.verbs[word[:i]]; next != nil && endings[word[i:]] {
			out = append(out, next)
		}
		if next := n.stems[word[:i]]; next != nil {
			out = append(out, next)
		}
	}
	return out
}

// lexicon is what all languages know of the concepts.
type lexicon struct {
	tags    map[string]rune  // by concept
	roots   map[string]*node // by language; "all" = words of every language
	signals map[string]bool  // words of which nearly every sentence that the grammar recognizes has one
}

// commonConcepts are those whose words say nothing about whether a sentence is an instruction.
const commonConcepts = " lead and that you i be have may he rel a the this in is if what past my plural filler number day now so again too eat said told once figure data "

//nolint:gochecknoglobals // immutable
var theLexicon = sync.OnceValue(func() *lexicon {
	lex := &lexicon{tags: map[string]rune{}, roots: map[string]*node{}, signals: map[string]bool{}}
	var tag rune
	isCommon := false
	for line := range strings.Lines(lexiconText) {
		if concept, ok := strings.CutPrefix(line, "= "); ok {
			concept, _, _ = strings.Cut(concept, ":")
			tag = firstTag + rune(len(lex.tags))
			lex.tags[concept] = tag
			isCommon = strings.Contains(commonConcepts, " "+concept+" ")
			continue
		}
		if phrases := strings.Fields(line); len(phrases) > 0 && phrases[0] != "#" {
			if lex.roots[phrases[0]] == nil {
				lex.roots[phrases[0]] = newNode()
			}
			for _, phrase := range phrases[1:] {
				lex.roots[phrases[0]].add(phrase, tag)
				if !isCommon {
					lex.signals[longestWord(phrase)] = true
				}
			}
		}
	}
	return lex
})

// longestWord returns the word of a phrase that says most; empty = it has only beginnings of words.
func longestWord(phrase string) (longest string) {
	for word := range strings.SplitSeq(phrase, "_") {
		if len(word) > len(longest) && !strings.ContainsAny(word, "*~'") {
			longest = word
		}
	}
	return longest
}

// verbEndings returns the endings of orders by language, with the pronouns that follow them.
//
//nolint:gochecknoglobals // immutable
var verbEndings = sync.OnceValue(func() map[string]map[string]bool {
	endings := map[string]map[string]bool{
		"en": wordSet("s"),
		"de": wordSet("e en n t st est et te ten tet le er ern ere"),
		"fr": wordSet("e es ez s er ir re ds t d vez vent ons sez ssez tes vons dre aille eras erez ras rez iras irez"),
		"es": {},
	}
	endings["de"][""], endings["fr"][""] = true, true
	for ending := range strings.FieldsSeq("a e as es an en ad ed id ar er ir amos emos ando iendo is ais eis") {
		endings["es"][ending] = true
		for pronoun := range strings.FieldsSeq("me te nos le les lo la los las se melo mela melos melas noslo selo") {
			endings["es"][ending+pronoun] = true
		}
	}
	return endings
})

// reading is a sentence as the words of one language.
type reading struct {
	language string
	tags     string   // of its phrases, in their order
	phrases  []string // its phrases
	known    float64  // the share of its words that the language has
}

// read returns what the folded sentence is in the languages that have most of its words.
func (lex *lexicon) read(folded string) []reading {
	words := tokens(folded)
	var out []reading
	best := 0.0
	for _, language := range []string{"en", "de", "fr", "es"} {
		r := lex.readAs(words, language)
		best = max(best, r.known)
		out = append(out, r)
	}
	return slices.DeleteFunc(out, func(r reading) bool { return r.known < best || r.known == 0 })
}

func (lex *lexicon) readAs(words []string, language string) reading {
	var tags strings.Builder
	var phrases []string
	count, known := 0, 0
	for len(words) > 0 {
		tag, n, isOwn := lex.lookUp(words, language)
		tags.WriteRune(tag)
		phrases = append(phrases, strings.Join(words[:n], " "))
		if tag != tagComma && tag != tagNumber {
			count += n
			if isOwn {
				known += n
			}
		}
		words = words[n:]
	}
	return reading{language: language, tags: tags.String(), phrases: phrases, known: float64(known) / float64(max(count, 1))}
}

// lookUp returns the tag of the longest phrase at the beginning of the words, and its length;
// isOwn says that the language has it, not only all languages together.
func (lex *lexicon) lookUp(words []string, language string) (tag rune, length int, isOwn bool) {
	endings := verbEndings()[language]
	window := words[:min(len(words), maxPhrase)]
	tag, length = lex.roots[language].longest(window, endings)
	if t, n := lex.roots["all"].longest(window, endings); n > length {
		return t, n, false
	}
	switch w := words[0]; {
	case tag != 0:
		return tag, length, true
	case w == ",":
		return tagComma, 1, false
	case unicode.IsDigit(rune(w[0])):
		return tagNumber, 1, false
	case strings.Trim(w, "q") == "":
		return tagQuote, 1, false
	}
	return tagOther, 1, false
}

// tokens returns the words of folded text as the lexicon has them: without hyphens, with what
// French leaves out ("l'", "n'") and signs of currencies and units as words of their own.
func tokens(folded string) []string {
	var out []string
	for w := range strings.FieldsFuncSeq(folded, func(r rune) bool { return r == ' ' || r == '-' }) {
		for {
			before, after, ok := strings.Cut(w, "'")
			if !ok || len(before) > 2 || after == "" || hasEntry("i|he|it|we|ya", before) {
				break
			}
			if before != "" {
				out = append(out, before+"'")
			}
			w = after
		}
		out = append(out, splitAmount(w)...)
	}
	return out
}

// splitAmount splits a sign of a currency or a unit from its amount: "400€", "$5", "10km".
func splitAmount(word string) []string {
	isUnit := func(r rune) bool { return !unicode.IsDigit(r) && !strings.ContainsRune(".,:", r) }
	if i := strings.IndexFunc(word, isUnit); i > 0 && unicode.IsDigit(rune(word[0])) {
		return []string{word[:i], word[i:]}
	}
	for _, sign := range []string{"€", "$", "£"} {
		if amount, ok := strings.CutPrefix(word, sign); ok && amount != "" {
			return []string{sign, amount}
		}
	}
	return []string{word}
}
