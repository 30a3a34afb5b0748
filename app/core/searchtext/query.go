package searchtext

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"bobbin/app/core"
)

// Limits of a query.
const (
	MaxQuery = 500 // bytes
	MaxWords = 64  // pairs of characters count as words
)

// Query is what is looked for: all of its terms must hold. There is at least one
// that is not a Not.
type Query struct {
	Terms []Term
}

// Term is a word, or several in this order without others between them.
type Term struct {
	Words  []string // never empty; a word alone may also be a part of one
	Prefix bool     // the last word may go on
	Not    bool     // must not be there
}

// Parse reads a query as people write it. Whatever the text, the result can be
// looked for; core.ErrInvalid says what to do about a text without words, with
// nothing but -words, and one that is too long.
func Parse(text string) (Query, error) {
	if len(text) > MaxQuery {
		return Query{}, invalid(fmt.Sprintf("a search has at most %d bytes, this one has %d; look for fewer words", MaxQuery, len(text)))
	}
	p := parser{rest: text}
	for p.next() {
	}
	words, wanted := 0, 0
	for _, t := range p.terms {
		words += len(t.Words)
		if !t.Not {
			wanted++
		}
	}
	switch {
	case len(p.terms) == 0:
		return Query{}, invalid("there is no word to look for; write at least one letter, digit or emoji: punctuation is not searched")
	case wanted == 0:
		return Query{}, invalid("this says only what must not be there; add a word to look for")
	case words > MaxWords:
		return Query{}, invalid(fmt.Sprintf("a search has at most %d words or pairs of characters, this one has %d; look for fewer", MaxWords, words))
	}
	return Query{Terms: p.terms}, nil
}

func invalid(message string) error {
	return &core.Error{Kind: core.ErrInvalid, Message: message, Fields: []core.FieldError{{Field: "q", Detail: message}}}
}

// parser takes a query apart.
type parser struct {
	rest  string
	terms []Term
}

// quotes are the ways to open and close a phrase. Any of them closes any.
const quotes = `"“”„«»「」『』`

// next reads what comes up to a space, or a phrase; false at the end.
func (p *parser) next() bool {
	p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace)
	if p.rest == "" {
		return false
	}
	not := negates(p.rest)
	if not {
		p.rest = p.rest[1:]
	}
	if first, size := utf8.DecodeRuneInString(p.rest); isQuote(first) {
		p.rest = p.rest[size:]
		p.phrase(p.until(isQuote), not)
		_, size = utf8.DecodeRuneInString(p.rest)
		p.rest = p.rest[size:]
		return true
	}
	p.chunk(p.until(func(r rune) bool { return unicode.IsSpace(r) || isQuote(r) }), not)
	return true
}

func isQuote(r rune) bool { return strings.ContainsRune(quotes, r) }

// negates reports whether the text begins with the minus of a -word. That of a
// --flag is none, nor one that stands alone.
func negates(text string) bool {
	rest, minus := strings.CutPrefix(text, "-")
	first, _ := utf8.DecodeRuneInString(rest)
	return minus && rest != "" && (isQuote(first) || kindOf(first) != separator)
}

// until takes the text up to the first rune that stop knows, or all of it.
func (p *parser) until(stop func(rune) bool) string {
	i := strings.IndexFunc(p.rest, stop)
	if i < 0 {
		i = len(p.rest)
	}
	text := p.rest[:i]
	p.rest = p.rest[i:]
	return text
}

func (p *parser) phrase(text string, not bool) {
	t := Term{Not: not}
	scan(text, func(k token) {
		if !k.part {
			t.Words = append(t.Words, string(k.text))
		}
	})
	p.add(t)
}

// chunk reads what was written without a space: its words are one phrase, but for
// commas, and where another script begins.
func (p *parser) chunk(text string, not bool) {
	t := Term{Not: not}
	var last token
	scan(text, func(k token) {
		if k.part {
			return
		}
		// ½ gives two words of one place.
		between := text[min(last.end, k.start):k.start]
		joined := k.kind == spaced && !strings.ContainsAny(between, ",;，；、") || k.kind == unspaced && k.run == last.run
		if k.kind != last.kind || !joined {
			p.add(t)
			t.Words = nil
		}
		t.Words = append(t.Words, string(k.text))
		last = k
	})
	// One letter and a star would be nearly everything.
	t.Prefix = last.kind == spaced && text[last.end:] == "*" && utf8.RuneCountInString(t.Words[len(t.Words)-1]) > 1
	p.add(t)
}

// add keeps a term, once.
func (p *parser) add(t Term) {
	if len(t.Words) == 0 {
		return
	}
	for _, known := range p.terms {
		if known.Not == t.Not && known.Prefix == t.Prefix && strings.Join(known.Words, " ") == strings.Join(t.Words, " ") {
			return
		}
	}
	p.terms = append(p.terms, t)
}
