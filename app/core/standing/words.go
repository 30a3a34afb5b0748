package standing

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// noEnd is the end of a text whose full stop ends no sentence: an abbreviation, or a number that
// counts what follows it, as German has them ("am 12. Oktober").
//
//nolint:gochecknoglobals // immutable
var noEnd = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|[ (])(?:e\.g|i\.e|etc|vs|approx|no|a\.m|p\.m|dr|mr|mrs|ms|prof|st|z\.b|d\.h|bzw|ca|usw|evtl|inkl|max|min|nr|hr|fr|mme|m|p\.ex|env|sr|sra|uds?|p\.ej|aprox|z|p` +
		`|(?:der|die|das|den|dem|des|eine?|eine[nmr]|ne|am|im|zum|zur|vom|beim|bis|ab|ins|jede[nrs]?) \d{1,2})\.[ \t]*$`)
})

// accents are the letters without accents of lower-case letters.
//
//nolint:gochecknoglobals // immutable
var accents = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "ß", "ss", "œ", "oe", "æ", "ae", "à", "a", "á", "a", "â", "a", "ã", "a", "ç", "c",
	"è", "e", "é", "e", "ê", "e", "ë", "e", "ì", "i", "í", "i", "î", "i", "ï", "i", "ñ", "n", "ò", "o", "ó", "o", "ô", "o", "õ", "o", "ù", "u", "ú", "u", "û", "u", "’", "'")

// fold returns the text in lower case without accents: words separated by one blank, commas
// between its parts as words of their own, no other punctuation.
func fold(text string) string {
	text = accents.Replace(strings.ToLower(text))
	var b strings.Builder
	before := ' '
	for i, r := range text {
		switch next, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):]); {
		case r >= 'a' && r <= 'z', isWordRune(r), strings.ContainsRune("'€$£%", r), r == '-' && isWordRune(before), strings.ContainsRune(".,:", r) && unicode.IsDigit(before) && unicode.IsDigit(next):
			b.WriteRune(r)
		case strings.ContainsRune(",;:(—–", r):
			b.WriteString(" , ")
		case !unicode.IsMark(r):
			b.WriteByte(' ')
		}
		before = r
	}
	words := slices.CompactFunc(strings.Fields(b.String()), func(a, b string) bool { return a == "," && b == "," })
	return strings.Trim(strings.Join(words, " "), " ,")
}

// splitWords returns the words of the text, folded.
func splitWords(text string) []string {
	return strings.FieldsFunc(fold(text), func(r rune) bool { return !isWordRune(r) })
}

// hasWordOf reports whether the text has a word of the set, whose words are folded.
func hasWordOf(text string, set map[string]bool) bool {
	return slices.ContainsFunc(splitWords(text), func(w string) bool { return set[w] })
}
