package summarize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	minWordLetters = 5 // of a word that carries a subject
	wordStem       = 5 // letters that most forms of a word share
	minDigits      = 2 // of a number that counts as a unit
)

// textWord is a run of letters, or of digits, in a text.
type textWord struct {
	text   string // as it is written; of a number only the digits
	at     int    // byte at which it begins
	number bool
	dense  bool // its script has no blanks: it is several words
}

// eachWord calls yield for the words of the text.
func eachWord(text string, yield func(textWord)) {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		end := at + size
		switch {
		case unicode.IsDigit(r):
			end = numberEnd(text, at)
			yield(textWord{text: digitsOf(text[at:end]), at: at, number: true})
		case unicode.IsLetter(r):
			dense := isDense(r)
			end = len(text)
			if n := strings.IndexFunc(text[at:], func(r rune) bool {
				return !unicode.IsMark(r) && (!unicode.IsLetter(r) || isDense(r) != dense)
			}); n >= 0 {
				end = at + n
			}
			yield(textWord{text: text[at:end], at: at, dense: dense})
		}
		at = end
	}
}

// numberEnd returns where the number that begins at a byte ends: 14,000 and 3.2 are one
// number each.
func numberEnd(text string, at int) int {
	separated := false
	for i, r := range text[at:] {
		switch {
		case unicode.IsDigit(r):
			separated = false
		case !separated && strings.ContainsRune(".,'’", r):
			separated = true
		case separated:
			return at + i - lastSize(text[:at+i])
		default:
			return at + i
		}
	}
	if separated {
		return len(text) - lastSize(text)
	}
	return len(text)
}

func lastSize(text string) int {
	_, size := utf8.DecodeLastRuneInString(text)
	return size
}

// digitsOf returns the digits of a number: 1,500 and 1.500 are equal.
func digitsOf(number string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, number)
}

// isDense reports whether the letter is of a script that is written without blanks, or
// that joins its words: pairs of such letters are the units instead of words.
func isDense(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// eachUnit calls yield with each unit of the text that carries a subject, and its place:
// the beginning of a longer word, a number, a pair of letters of a dense script. The rules
// are the same for all languages.
func eachUnit(text string, yield func(unit string, at int)) {
	eachWord(text, func(w textWord) {
		switch {
		case w.number && len(w.text) >= minDigits:
			yield(w.text, w.at)
		case w.dense:
			first := -1
			for i := range w.text {
				if first >= 0 {
					_, size := utf8.DecodeRuneInString(w.text[i:])
					yield(w.text[first:i+size], w.at+first)
				}
				first = i
			}
		case !w.number && utf8.RuneCountInString(w.text) >= minWordLetters:
			yield(stemOf(w.text), w.at)
		}
	})
}

// stemOf returns the beginning of a word in lower case.
func stemOf(word string) string {
	n := 0
	for i := range word {
		if n == wordStem {
			word = word[:i]
			break
		}
		n++
	}
	return strings.ToLower(word)
}

// unitsOf returns the units of the text, each once.
func unitsOf(text string) map[string]bool {
	units := map[string]bool{}
	eachUnit(text, func(unit string, _ int) { units[unit] = true })
	return units
}
