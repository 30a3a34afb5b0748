package standing

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// endsWithAbbreviation reports whether the text ends with a full stop that ends no sentence.
func endsWithAbbreviation(text string) bool {
	text = strings.TrimRight(text, " \t")
	word := strings.ToLower(strings.TrimLeft(text[strings.LastIndexAny(text, " (")+1:], "("))
	return hasEntry("e.g.|i.e.|etc.|vs.|approx.|no.|a.m.|p.m.|dr.|mr.|mrs.|ms.|prof.|st.|z.b.|d.h.|bzw.|ca.|usw.|evtl.|inkl.|max.|min.|nr.|hr.|fr.|mme.|m.|p.ex.|env.|sr.|sra.|ud.|uds.|p.ej.|aprox.|z.|p.", word)
}

// endsWithOrdinal reports whether the text ends with a number that counts what follows it, as
// German has them: "am 12. Oktober", "im 1. jahr", "die 7. Klasse".
func endsWithOrdinal(text, next string) bool {
	text, ok := strings.CutSuffix(strings.TrimRight(text, " \t"), ".")
	before := strings.TrimRight(text, "0123456789")
	digits := len(text) - len(before)
	if !ok || digits != 1 && digits != 2 {
		return false
	}
	word, _, _ := strings.Cut(next, " ")
	word = strings.Trim(word, ".,;:!?")
	first, _ := utf8.DecodeRuneInString(word)
	if unicode.IsLower(first) || hasEntry("januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember", strings.ToLower(word)) {
		return true
	}
	before = strings.TrimRight(before, " ")
	article := strings.ToLower(before[strings.LastIndexByte(before, ' ')+1:])
	isNoun := unicode.IsUpper(first) && !stopSet()[fold(word)]
	return isNoun && hasEntry("der|die|das|den|dem|des|ein|eine|einen|einem|einer|ne|am|im|zum|zur|vom|beim|ins|jede|jeden|jeder|jedes", article)
}

// hasEntry reports whether the list, separated by "|", has the word.
func hasEntry(list, word string) bool {
	for entry := range strings.SplitSeq(list, "|") {
		if entry == word {
			return true
		}
	}
	return false
}

// foldRune returns the letters without accents of a lower-case letter; empty = the same.
func foldRune(r rune) string {
	switch r {
	case 'ä':
		return "ae"
	case 'ö':
		return "oe"
	case 'ü':
		return "ue"
	case 'ß':
		return "ss"
	case 'œ':
		return "oe"
	case 'æ':
		return "ae"
	case 'à', 'á', 'â', 'ã':
		return "a"
	case 'ç':
		return "c"
	case 'è', 'é', 'ê', 'ë':
		return "e"
	case 'ì', 'í', 'î', 'ï':
		return "i"
	case 'ñ':
		return "n"
	case 'ò', 'ó', 'ô', 'õ':
		return "o"
	case 'ù', 'ú', 'û':
		return "u"
	}
	return ""
}

// fold returns the text in lower case without accents: words separated by one blank, commas
// between its parts as words of their own, no other punctuation.
func fold(text string) string {
	var b strings.Builder
	b.Grow(len(text) + 8)
	last, before := ' ', ' ' // written, and read
	put := func(r rune) {
		if r != ' ' || last != ' ' {
			b.WriteRune(r)
			last = r
		}
	}
	for i, r := range text {
		r = unicode.ToLower(r)
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9': // most letters
			put(r)
		case r == '’' || r == '\'':
			put('\'')
		case r == '-' && isWordRune(before), strings.ContainsRune("€$£%", r), r > 127 && foldRune(r) == "" && isWordRune(r), r <= 127 && isWordRune(r):
			put(r)
		case foldRune(r) != "":
			for _, f := range foldRune(r) {
				put(f)
			}
		case strings.ContainsRune(".,:", r) && unicode.IsDigit(before) && nextIsDigit(text[i+1:]):
			put(r)
		case strings.ContainsRune(",;:(—–", r):
			if last != ' ' || b.Len() > 0 {
				put(' ')
				if !strings.HasSuffix(b.String(), ", ") && b.Len() > 0 {
					put(',')
					put(' ')
				}
			}
		case !unicode.IsMark(r):
			put(' ')
		}
		before = r
	}
	return strings.Trim(b.String(), " ,")
}

func nextIsDigit(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.IsDigit(r)
}

// hasWordOf reports whether the text has a word of the set, whose words are folded. It is
// fast, as it reads all that a message has.
func hasWordOf(text string, set map[string]bool) bool {
	word := make([]byte, 0, maxWord)
	for _, r := range text {
		if r = unicode.ToLower(r); isWordRune(r) {
			if folded := foldRune(r); len(word)+utf8.UTFMax > maxWord {
				continue
			} else if folded != "" {
				word = append(word, folded...)
			} else {
				word = utf8.AppendRune(word, r)
			}
			continue
		}
		if set[string(word)] {
			return true
		}
		word = word[:0]
	}
	return set[string(word)]
}

// maxWord is the length of a word that can be a trigger, in bytes.
const maxWord = 64
