package searchtext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"bobbin/app/core"
)

const (
	// Limit is how much of a text counts, in bytes.
	Limit = 256 << 10
	// maxWord is how much of a word counts, in bytes: a line of base64 is one word.
	maxWord = 128
	// maxHumps is the longest word that is split into humps, in bytes.
	maxHumps = 64
	// nonJoiner is between the parts of words of Persian and others, where some write a space or nothing.
	nonJoiner = '\u200C'
)

// kind is the kind of a rune, and of the word that it belongs to.
type kind uint8

const (
	separator kind = iota
	spaced         // letters and digits of scripts that put spaces between words
	unspaced       // characters of those that do not
	symbol         // a word of its own
	mark           // belongs to the rune before it
)

// token is a word, or a part of one. Its text is valid until the next.
type token struct {
	text       []byte
	start, end int // in the scanned text, in bytes
	kind       kind
	run        int  // counts the runs of one kind
	part       bool // of a word: without a position of its own
}

// place is where a byte of a word comes from.
type place struct{ at, source int }

// scanner splits a text into tokens and calls next for each, until next returns false.
type scanner struct {
	next func(token) bool
	done bool

	kind       kind // of the run; separator = none
	run        int
	word       []byte // folded
	start, end int    // of the word in the text
	humps      []place
	isCut      bool    // the humps are words: a zero-width non-joiner is between them
	before     [2]rune // the previous runes, as written; 0 = none

	length int    // characters of the current unspaced run
	pair   []byte // the previous character and the current one
	cut    int    // where the current one begins in pair
	second int    // where the current one begins in the text
}

// scanTokens calls next for every token of the text, in order, until it returns false.
func scanTokens(text string, next func(token) bool) {
	s := scanner{next: next}
	text = core.Clip(text, Limit)
	for i := 0; i < len(text) && !s.done; {
		unit, size := unitAt(text[i:])
		for _, r := range unit {
			s.addRune(r, i, i+size)
		}
		i += size
	}
	s.flush()
}

// emit calls next with a token.
func (s *scanner) emit(t token) { s.done = s.done || !s.next(t) }

// unitAt returns the shortest beginning of the text that can be normalized alone, in
// normal form, and its size in the text.
func unitAt(text string) (string, int) {
	if text[0] < utf8.RuneSelf && (len(text) == 1 || text[1] < utf8.RuneSelf) {
		return text[:1], 1
	}
	r, size := utf8.DecodeRuneInString(text)
	if isPlainHan(r) {
		if next, _ := utf8.DecodeRuneInString(text[size:]); size == len(text) || isPlainHan(next) || next < utf8.RuneSelf {
			return text[:size], size
		}
	}
	if n := norm.NFKC.NextBoundaryInString(text, true); n > 0 {
		size = n
	}
	return norm.NFKC.String(text[:size]), size
}

// isPlainHan reports whether r is in the block whose characters no normal form changes.
func isPlainHan(r rune) bool { return r >= 0x4E00 && r <= 0x9FFF }

// kindOf returns the kind of r.
func kindOf(r rune) kind {
	switch {
	case r < utf8.RuneSelf:
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' {
			return spaced
		}
		return separator
	case isPlainHan(r):
		return unspaced
	case r == utf8.RuneError:
		return separator
	case !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r):
		if unicode.Is(unicode.So, r) {
			return symbol
		}
		return separator
	case r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		return unspaced
	case unicode.IsMark(r):
		return mark
	}
	return spaced
}

// isIgnored reports whether r is left out of words, because ordinary writing leaves it out or nobody
// sees it: the vowel marks of Arabic and Hebrew, the Arabic tatweel, and invisible characters, such as
// soft hyphens and marks of direction.
func isIgnored(r rune) bool {
	switch {
	case r < 0xAD || 0x2E80 <= r && r < 0xFE00: // the last are those of East Asia
		return false
	case r == 0x0640 || unicode.Is(unicode.Cf, r):
		return true
	}
	return (0x0591 <= r && r <= 0x06ED || 0x08CA <= r && r <= 0x08FF) && unicode.Is(unicode.Mn, r)
}

// addRune adds a rune that comes from text[start:end]. A zero-width non-joiner separates words, as a space
// would, and is left out of the whole, which is a part of both.
func (s *scanner) addRune(r rune, start, end int) {
	if isIgnored(r) {
		if r == nonJoiner && s.kind == spaced {
			s.humps, s.isCut = append(s.humps, place{len(s.word), end}), true
			return
		}
		if s.kind != separator {
			s.end = end
		}
		return
	}
	k := kindOf(r)
	if k == mark {
		if s.kind == spaced {
			s.addLetter(r, start, end)
		}
		return
	}
	if k != s.kind || k == symbol {
		s.flush()
		if k == separator {
			return
		}
		s.kind, s.start, s.run = k, start, s.run+1
	}
	if k == unspaced {
		// It forms a word with the previous one, and is a part alone.
		if s.length > 0 {
			s.pair = append(s.pair[:0], s.pair[s.cut:]...)
		}
		first := s.second
		s.cut, s.second = len(s.pair), start
		s.pair = utf8.AppendRune(s.pair, unicode.ToLower(r))
		s.length++
		if s.length == 2 {
			s.emit(token{text: s.pair[:s.cut], start: first, end: s.end, kind: unspaced, run: s.run, part: true})
		}
		if s.length > 1 {
			s.emit(token{text: s.pair, start: first, end: end, kind: unspaced, run: s.run})
			s.emit(token{text: s.pair[s.cut:], start: start, end: end, kind: unspaced, run: s.run, part: true})
		}
		s.end = end
		return
	}
	s.addLetter(r, start, end)
}

// addLetter adds a rune to a word.
func (s *scanner) addLetter(r rune, start, end int) {
	if s.end < start || s.end == 0 {
		s.end = start
	}
	switch before, last := s.before[0], s.before[1]; {
	case last == 0 || unicode.IsMark(r):
	case unicode.IsUpper(r) && !unicode.IsUpper(last):
		s.humps = append(s.humps, place{len(s.word), start})
	case unicode.IsLower(r) && unicode.IsUpper(last) && unicode.IsUpper(before):
		// The last of several capitals begins the next hump: HTTP|Server.
		_, size := utf8.DecodeLastRune(s.word)
		s.humps = append(s.humps, place{len(s.word) - size, s.end - utf8.RuneLen(last)})
	}
	s.word = appendFolded(s.word, r)
	s.before[0], s.before[1] = s.before[1], r
	s.end = end
}

// appendFolded appends r in lower case.
func appendFolded(to []byte, r rune) []byte {
	switch {
	case 'A' <= r && r <= 'Z':
		return append(to, byte(r)+'a'-'A')
	case r < utf8.RuneSelf:
		return append(to, byte(r))
	case r == 'ß' || r == 'ẞ':
		return append(to, "ss"...)
	case r == 'ς':
		r = 'σ' // at the end of a word
	case r == 'ı':
		r = 'i' // as I is in lower case
	case 'Ά' <= r && r <= 'ώ':
		const accented, plain = "άέήίόύώΐΰ", "αεηιουωϊϋ" // each of two bytes; capitals have no accent
		if i := strings.IndexRune(accented, unicode.ToLower(r)); i >= 0 {
			r, _ = utf8.DecodeRuneInString(plain[i:])
		}
	}
	return utf8.AppendRune(to, unicode.ToLower(r))
}

// flush ends the run.
func (s *scanner) flush() {
	switch {
	case s.kind == unspaced && s.length == 1:
		s.emit(token{text: s.pair, start: s.second, end: s.end, kind: unspaced, run: s.run})
	case s.kind == spaced || s.kind == symbol:
		word := s.word
		if len(word) > maxWord {
			word = []byte(core.Clip(string(word), maxWord))
		}
		if n := len(s.humps); n > 0 && s.humps[n-1].at == len(s.word) {
			s.humps = s.humps[:n-1]
		}
		isWhole := !s.isCut || len(s.word) > maxHumps || len(s.humps) == 0
		s.emit(token{text: word, start: s.start, end: s.end, kind: s.kind, run: s.run, part: !isWhole})
		if len(s.humps) == 0 || len(s.word) > maxHumps {
			break
		}
		from := place{0, s.start}
		for _, to := range append(s.humps, place{len(s.word), s.end}) { // as parts of the word or as words
			if to.at > from.at && to.source > from.source {
				s.emit(token{text: s.word[from.at:to.at], start: from.source, end: to.source, kind: spaced, run: s.run, part: isWhole})
			}
			from = to
		}
	}
	s.kind, s.word, s.humps, s.isCut, s.before, s.end = separator, s.word[:0], s.humps[:0], false, [2]rune{}, 0
	s.length, s.pair, s.cut = 0, s.pair[:0], 0
}

// Document is the searchable form of a text.
type Document struct {
	// Words are the words in order.
	Words []string
	// Parts are parts of words that are not words of the text, each once.
	Parts []string
	// Stems are the stems that differ from their words, each once, with StemPrefix.
	Stems []string
	// Terms are what ranking counts.
	Terms Terms
	// Length is the number of words without stop words.
	Length int
}

// Text returns the words of a text. They have only letters, digits, marks and symbols, and
// at most 128 bytes each.
func Text(text string) Document {
	var d Document
	var all []term
	place := map[string]int{} // in all, by the text
	scanTokens(text, func(t token) bool {
		i, known := place[string(t.text)]
		if !known {
			i = len(all)
			all = append(all, term{text: string(t.text)})
			place[all[i].text] = i
		}
		if t.part {
			all[i].parts++
		} else {
			all[i].words++
			d.Words = append(d.Words, all[i].text)
		}
		return true
	})
	d.addTerms(all)
	return d
}

// term is what a text has, with how often it is a word there, and a part of one.
type term struct {
	text         string
	words, parts int
}
