package summarize

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/abadojack/whatlanggo"

	"bobbin/app/core"
)

// How much text is examined, in bytes: in all, and of one message, which begins with its
// own words and quotes later.
const (
	languageSample = 64 << 10
	languageHead   = 400
	enoughVotes    = 5   // messages in one language
	sureBytes      = 150 // of a text whose language can be compared with another's
)

// languagesOf returns the languages of a conversation, that of its summary first; none = not sure. The
// users' messages count first, then the previous summary, which is in the conversation's language, the
// assistant's last.
func languagesOf(messages []core.Message, previous string) []string {
	words := newLedger().parse(core.Clip(previous, languageSample))
	found := []string{spokenLanguage(messages, core.RoleUser), detectLanguage(withoutCode(words)), spokenLanguage(messages, core.RoleAssistant)}
	return slices.DeleteFunc(found, func(name string) bool { return name == "" })
}

// isForeign reports whether the text is certainly in a language that the conversation does not use.
func (e evidence) isForeign(text string) bool {
	text = withoutCode(text)
	name := detectLanguage(text)
	return name != "" && len(text) >= sureBytes && len(e.languages) > 1 && !slices.Contains(e.languages, name)
}

// spokenLanguage returns the language of most of the newest messages of the role, or of all of
// them together; empty = not sure.
func spokenLanguage(messages []core.Message, role core.Role) string {
	var all strings.Builder
	votes, best := map[string]int{}, ""
	for i := len(messages) - 1; i >= 0 && all.Len() < languageSample && votes[best] < enoughVotes; i-- {
		if messages[i].Role != role {
			continue
		}
		text := core.Clip(strings.ToValidUTF8(withoutCode(core.Clip(messages[i].Content, languageSample)), ""), languageHead)
		first, _, _ := strings.Cut(text, "\n") // later lines may be quoted
		all.WriteString(text + "\n")
		name := cmp.Or(detectLanguage(first), detectLanguage(text))
		if name == "" {
			continue
		}
		if votes[name]++; best == "" || votes[name] > votes[best] {
			best = name
		}
	}
	return cmp.Or(best, detectLanguage(all.String()))
}

// code is in fences, in backquotes, or a word that looks like it.
var code = regexp.MustCompile("(?s)```.*?(?:```|$)|`[^`]*(?:`|$)|[^\\s`]*[/\\\\_=(){}<>\\[\\]@#$|;][^\\s`]*")

// withoutCode drops code. Line breaks outside of it stay.
func withoutCode(text string) string { return code.ReplaceAllLiteralString(text, "") }

const (
	minLetters   = 8 // of a text whose language is detected
	weightLetter = 3 // of a letter that is not Latin: texts in any language contain names and code in Latin letters
	shareKana    = 8 // at least one in so many letters of a Japanese text is kana
)

// detectLanguage returns the language of the text; empty = not sure.
func detectLanguage(text string) string {
	latin, other, kana := 0, 0, 0
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Latin, r):
			latin++
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			kana++
			other++
		case unicode.IsLetter(r):
			other++
		}
	}
	if latin+weightLetter*other < minLetters {
		return ""
	}
	if kana*shareKana > latin+other {
		return "Japanese"
	}
	if weightLetter*other > latin {
		text = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Latin, r) {
				return ' '
			}
			return r
		}, text)
	}
	// The fewer there are, the shorter a text can be for a sure result.
	known := map[whatlanggo.Lang]bool{}
	for _, lang := range []whatlanggo.Lang{
		whatlanggo.Eng, whatlanggo.Deu, whatlanggo.Fra, whatlanggo.Spa, whatlanggo.Por, whatlanggo.Ita, whatlanggo.Nld, whatlanggo.Pol,
		whatlanggo.Ces, whatlanggo.Hun, whatlanggo.Ron, whatlanggo.Swe, whatlanggo.Fin, whatlanggo.Tur, whatlanggo.Ind, whatlanggo.Vie,
		whatlanggo.Rus, whatlanggo.Ukr, whatlanggo.Ell, whatlanggo.Heb, whatlanggo.Arb, whatlanggo.Pes, whatlanggo.Urd,
		whatlanggo.Hin, whatlanggo.Mar, whatlanggo.Ben, whatlanggo.Tam, whatlanggo.Tha, whatlanggo.Cmn, whatlanggo.Jpn, whatlanggo.Kor,
	} {
		known[lang] = true
	}
	found := whatlanggo.DetectWithOptions(text, whatlanggo.Options{Whitelist: known})
	switch {
	case !found.IsReliable():
		return ""
	case found.Lang == whatlanggo.Cmn:
		return "Chinese"
	default:
		return found.Lang.String()
	}
}
