package summarize

import (
	"cmp"
	"strings"
	"unicode"

	"bobbin/app/core"
)

// How much text is looked at, in bytes: of everything, and of one message, which says
// first what it is about and quotes afterwards.
const (
	languageSample = 16 << 10
	languageHead   = 400
)

// language names the language of the conversation where it is sure, else it is
// empty. What users say counts; if that says nothing, the summary before, which was
// in the conversation's language, and then what the assistant says.
func language(messages []core.Message, previous string) string {
	if name := languageOf(messages, core.RoleUser); name != "" {
		return name
	}
	words, _ := splitLedger(core.Clip(previous, languageSample))
	if name := guess(prose(words)); name != "" {
		return name
	}
	return languageOf(messages, core.RoleAssistant)
}

// languageOf names the language of most messages of a role; of those that are sure, or
// else of all together. The newest wins a draw.
func languageOf(messages []core.Message, role core.Role) string {
	var all strings.Builder
	votes, best := map[string]int{}, ""
	for i := len(messages) - 1; i >= 0 && all.Len() < languageSample; i-- {
		if messages[i].Role != role {
			continue
		}
		text := strings.ToValidUTF8(prose(core.Clip(messages[i].Content, languageSample)), "")
		text = core.Clip(text, languageHead)
		first, _, _ := strings.Cut(text, "\n") // what follows may be quoted
		all.WriteString(text + "\n")
		if name := cmp.Or(guess(first), guess(text)); name != "" {
			if votes[name]++; best == "" || votes[name] > votes[best] {
				best = name
			}
		}
	}
	return cmp.Or(best, guess(all.String()))
}

// prose drops code: in fences, in backquotes, and words that look like it. Lines stay.
func prose(text string) string {
	var b strings.Builder
	for line := range strings.Lines(outside(outside(text, "```"), "`")) {
		for w := range strings.FieldsSeq(line) {
			if !strings.ContainsAny(w, `/\_=(){}<>[]@#$|;`) {
				b.WriteString(w + " ")
			}
		}
		if strings.HasSuffix(line, "\n") {
			b.WriteString("\n")
		}
	}
	return b.String()
}

// outside drops what stands between two marks.
func outside(text, mark string) string {
	if !strings.Contains(text, mark) {
		return text
	}
	var b strings.Builder
	for i, part := range strings.Split(text, mark) {
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
	case "Arabic":
		return guessArabic(text)
	case "Devanagari":
		if strings.Contains(text, "है") || strings.Contains(text, "हैं") {
			return "Hindi"
		}
		return "" // shared by several languages
	default:
		return best
	}
}

// weightHan and weightSyllable are how many letters a character counts that is a word, or
// a syllable of one: names of programs and the like stand between them in Latin letters.
const (
	weightHan      = 3
	weightSyllable = 2
)

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
			scripts["Chinese"] += weightHan
			letters += weightHan - 1
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			scripts["Japanese"] += weightSyllable
			letters += weightSyllable - 1
		case unicode.Is(unicode.Hangul, r):
			scripts["Korean"] += weightSyllable
			letters += weightSyllable - 1
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

// guessCyrillic tells Russian from Ukrainian by letters that only one has, else by its
// commonest words.
func guessCyrillic(text string) string {
	ukrainian := strings.ContainsAny(text, "іїєґІЇЄҐ")
	russian := strings.ContainsAny(text, "ыэёЫЭЁ")
	if !russian && !ukrainian {
		for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
			switch w {
			case "что", "это", "как", "пожалуйста", "почему", "нужно", "для", "или", "нет", "если", "мне":
				russian = true
			}
		}
	}
	switch {
	case russian && !ukrainian:
		return "Russian"
	case ukrainian && !russian:
		return "Ukrainian"
	default:
		return ""
	}
}

// guessArabic tells the languages of Arabic script by letters that not all have.
func guessArabic(text string) string {
	switch {
	case strings.ContainsAny(text, "ٹڈڑںےھ"):
		return "Urdu"
	case strings.ContainsAny(text, "پچژگ"):
		return "Persian"
	case strings.ContainsAny(text, "ةىيكأإ"):
		return "Arabic"
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
