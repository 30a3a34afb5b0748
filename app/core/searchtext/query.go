package searchtext

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"bobbin/app/core"
)

// Limits of a query.
const (
	MaxQuery   = 500 // bytes
	MaxWords   = 64  // pairs of characters count as words
	MaxPhrases = 8   // terms of several words
)

// Query is a parsed query: all of its terms must match. At least one term has Not unset.
type Query struct {
	Terms []Term
}

// Term is a word, or several consecutive ones.
type Term struct {
	Words  []string // never empty; a single word also matches a part of a word
	Whole  string   // the words as one, which matches in their place; "" = only the words do
	Prefix bool     // the last word is a prefix
	Not    bool     // must be absent
}

// Parse parses a query as people write it. Every result can be searched for;
// core.ErrInvalid explains what to change in a text without words, with only -words, or
// that is too long.
func Parse(text string) (Query, error) {
	if len(text) > MaxQuery {
		return Query{}, invalidQuery(fmt.Sprintf("a query may have at most %d bytes, this one has %d; use fewer words", MaxQuery, len(text)))
	}
	p := parser{rest: text}
	for p.parseNext() {
	}
	q := Query{Terms: p.terms}
	switch {
	case len(p.terms) == 0:
		return Query{}, invalidQuery("the query has no word; enter at least one letter, digit or emoji: punctuation is not searched")
	case !slices.ContainsFunc(p.terms, func(t Term) bool { return !t.Not }):
		return Query{}, invalidQuery("the query only excludes words; add a word to search for")
	}
	if err := q.checkLimits(); err != nil {
		return Query{}, err
	}
	return q, nil
}

// checkLimits returns core.ErrInvalid if the query has too many words or phrases.
func (q Query) checkLimits() error {
	switch words, phrases := q.countWords(); {
	case words > MaxWords:
		return invalidQuery(fmt.Sprintf("a query may have at most %d words or pairs of characters, this one has %d; use fewer", MaxWords, words))
	case phrases > MaxPhrases:
		return invalidQuery(fmt.Sprintf("a query may have at most %d phrases, this one has %d; names such as a.b and C-4 count as phrases; use fewer", MaxPhrases, phrases))
	}
	return nil
}

// countWords returns how many words the terms have, and how many terms are phrases.
func (q Query) countWords() (words, phrases int) {
	for _, t := range q.Terms {
		words += len(t.Words)
		if len(t.Words) > 1 {
			phrases++
		}
		if t.Whole != "" {
			words++
		}
	}
	return words, phrases
}

func invalidQuery(message string) error {
	return &core.Error{Kind: core.ErrInvalid, Message: message, Fields: []core.FieldError{{Field: "q", Detail: message}}}
}

// parser splits a query into terms.
type parser struct {
	rest  string
	terms []Term
	known map[string]bool // the terms
}

// quotes are the ways to open and close a phrase. Any of them closes any.
const quotes = `"“”„«»「」『』`

// parseNext reads a phrase, or the text up to the next space; false at the end.
func (p *parser) parseNext() bool {
	p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace)
	if p.rest == "" {
		return false
	}
	// The minus of a -word, not that of a --flag, of -f or -1 as commands and their output have them, or a minus alone.
	rest, not := strings.CutPrefix(p.rest, "-")
	next, n := utf8.DecodeRuneInString(rest)
	isShort := n == 1 && (len(rest) == 1 || rest[1] == ' ') || unicode.IsDigit(next)
	if not = not && rest != "" && !isShort && (isQuote(next) || kindOf(next) != separator); not {
		p.rest = rest
	}
	if first, size := utf8.DecodeRuneInString(p.rest); isQuote(first) {
		p.rest = p.rest[size:]
		t := Term{Not: not}
		scanTokens(p.readUntil(isQuote), func(k token) bool {
			if !k.part {
				t.Words = append(t.Words, string(k.text))
			}
			return true
		})
		p.addTerm(t)
		_, size = utf8.DecodeRuneInString(p.rest)
		p.rest = p.rest[size:]
		return true
	}
	p.addChunk(p.readUntil(func(r rune) bool { return unicode.IsSpace(r) || isQuote(r) }), not)
	return true
}

func isQuote(r rune) bool { return strings.ContainsRune(quotes, r) }

// readUntil reads the text up to the first rune for which stop is true, or all of it.
func (p *parser) readUntil(stop func(rune) bool) string {
	i := strings.IndexFunc(p.rest, stop)
	if i < 0 {
		i = len(p.rest)
	}
	text := p.rest[:i]
	p.rest = p.rest[i:]
	return text
}

// addChunk adds text without a space: its words are one phrase, split at commas and where
// another script begins. Those of one word with non-joiners also match that word without them.
func (p *parser) addChunk(text string, not bool) {
	t := Term{Not: not}
	var last token
	scanTokens(text, func(k token) bool {
		if k.part {
			return true
		}
		// ½ is two words in one place.
		between := text[min(last.end, k.start):k.start]
		joined := k.kind == spaced && !strings.ContainsAny(between, ",;，；、") || k.kind == unspaced && k.run == last.run
		if k.kind != last.kind || !joined {
			p.addTerm(t)
			t.Words = nil
		}
		t.Words = append(t.Words, string(k.text))
		last = k
		return true
	})
	if joined := strings.ReplaceAll(text, string(nonJoiner), ""); joined != text && len(t.Words) > 1 && len(t.Words) <= maxIdentifier {
		if words := Text(joined).Words; len(words) == 1 {
			t.Whole = words[0]
		}
	}
	// One letter and a star would match almost everything.
	t.Prefix = last.kind == spaced && text[last.end:] == "*" && utf8.RuneCountInString(t.Words[len(t.Words)-1]) > 1
	p.addTerm(t)
}

// addTerm adds a term unless the query has it.
func (p *parser) addTerm(t Term) {
	if len(t.Words) == 0 {
		return
	}
	if p.known == nil {
		p.known = map[string]bool{}
	}
	key := fmt.Sprint(t.Not, t.Prefix, t.Words, t.Whole)
	if p.known[key] {
		return
	}
	p.known[key] = true
	p.terms = append(p.terms, t)
}
