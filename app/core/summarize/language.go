package summarize

import (
	"strings"
	"unicode"

	"bobbin/app/core"
)

// languageSample is how much text is looked at, in bytes; a guess needs no more.
const languageSample = 16 << 10

// language names the language of the conversation where it is sure, else it is
// empty. What users say counts; if that says nothing, everything said.
func language(messages []core.Message) string {
	if name := guess(sample(messages, core.RoleUser)); name != "" {
		return name
	}
	return guess(sample(messages, core.RoleAssistant))
}

// sample collects the newest text of a role, without code blocks.
func sample(messages []core.Message, role core.Role) string {
	var b strings.Builder
	for i := len(messages) - 1; i >= 0 && b.Len() < languageSample; i-- {
		if messages[i].Role == role {
			b.WriteString(prose(core.Clip(messages[i].Content, languageSample/4)) + "\n")
		}
	}
	return strings.ToValidUTF8(b.String(), "")
}

// prose drops fenced code.
func prose(text string) string {
	if !strings.Contains(text, "```") {
		return text
	}
	var b strings.Builder
	for i, part := range strings.Split(text, "```") {
		if i%2 == 0 {
			b.WriteString(part)
		}
	}
	return b.String()
}

// guess names the language of the text by its script, or by its commonest words.
func guess(text string) string {
	letters, scripts := countScripts(text)
	if letters < 8 {
		return ""
	}
	best, most := "", 0
	for name, n := range scripts {
		if n > most {
			best, most = name, n
		}
	}
	if scripts["Japanese"]*8 > letters { // kana stands among Chinese characters
		return "Japanese"
	}
	if most*2 < letters {
		return ""
	}
	switch best {
	case "Latin":
		return guessByWords(text)
	case "Cyrillic":
		return guessCyrillic(text)
	case "Devanagari", "Arabic":
		return "" // shared by several languages
	default:
		return best
	}
}

// countScripts counts letters by the language that owns their script, or by the
// script where several share it.
func countScripts(text string) (letters int, scripts map[string]int) {
	scripts = map[string]int{}
	for _, r := range text {
		if !unicode.IsLetter(r) {
			continue
		}
		letters++
		switch {
		case r < 0x250:
			scripts["Latin"]++
		case unicode.Is(unicode.Han, r):
			scripts["Chinese"]++
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			scripts["Japanese"]++
		case unicode.Is(unicode.Hangul, r):
			scripts["Korean"]++
		case unicode.Is(unicode.Cyrillic, r):
			scripts["Cyrillic"]++
		case unicode.Is(unicode.Greek, r):
			scripts["Greek"]++
		case unicode.Is(unicode.Hebrew, r):
			scripts["Hebrew"]++
		case unicode.Is(unicode.Thai, r):
			scripts["Thai"]++
		case unicode.Is(unicode.Arabic, r):
			scripts["Arabic"]++
		case unicode.Is(unicode.Devanagari, r):
			scripts["Devanagari"]++
		}
	}
	return letters, scripts
}

// guessCyrillic tells Russian from Ukrainian by letters that only one has.
func guessCyrillic(text string) string {
	russian := strings.Count(text, "ы") + strings.Count(text, "э")
	ukrainian := strings.Count(text, "і") + strings.Count(text, "ї") + strings.Count(text, "є")
	switch {
	case russian > 0 && ukrainian == 0:
		return "Russian"
	case ukrainian > 0 && russian == 0:
		return "Ukrainian"
	default:
		return ""
	}
}

// stopWords are common words by language. Words that are code in English, or
// common in two of the languages with different weight, are left out.
func stopWords() map[string]string {
	return map[string]string{
		"English":    "the and that have with this you your what would please can we they are was how should does is to it of my",
		"German":     "der die das und ist nicht ich wir sie mit ein eine für auf wie bitte auch noch kannst werden soll dem den zu",
		"French":     "le les des est une je vous nous dans pour pas avec sur mais plaît être cette comment peux et du au ce",
		"Spanish":    "el los las es una por para con pero como más está qué puedes gracias esto cómo favor del y mi se lo",
		"Portuguese": "os as uma não para com você mas como está isso são também obrigado pode por do da em um ao",
		"Italian":    "il gli che è una per non con sono come questo puoi grazie della anche di più ho le mi",
		"Dutch":      "het een en van niet ik wij met voor op hoe kan dat zijn alsjeblieft ook wat je deze moet",
		"Polish":     "nie się jest na to z jak czy dla proszę tego mam być może są ale tak",
		"Turkish":    "bir ve bu için ile nasıl değil ne daha lütfen var mı çok ben gibi",
		"Swedish":    "och att det är som en inte jag vi med för på hur kan du av har om",
	}
}

// guessByWords names a language of Latin script if its common words are there,
// and clearly more of them than of any other's.
func guessByWords(text string) string {
	counts := map[string]int{}
	total := 0
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		counts[w]++
		total++
	}
	best, most, second := "", 0, 0
	for name, words := range stopWords() {
		score := 0
		for _, w := range strings.Fields(words) {
			score += counts[w]
		}
		switch {
		case score > most:
			best, most, second = name, score, most
		case score > second:
			second = score
		}
	}
	if most < 3 || most*10 < total || most < 2*second {
		return ""
	}
	return best
}
