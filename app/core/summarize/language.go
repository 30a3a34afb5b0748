package summarize

import (
	"cmp"
	"maps"
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
	sureLetters    = 150 // of a text whose language can be compared with another's
)

// spokenLanguages are the languages of a conversation.
type spokenLanguages struct {
	main string   // of the summary; empty = not sure
	all  []string // every one that the conversation may use; empty = there may be others
}

// languagesOf returns the languages of the messages and of the previous summary, which is
// in the conversation's language. The users' messages count first, the assistant's last.
func languagesOf(messages []core.Message, previous string) spokenLanguages {
	words, _ := splitLedger(core.Clip(previous, languageSample))
	before := detectLanguage(withoutCode(words))
	users, assistant := countVotes(messages, core.RoleUser), countVotes(messages, core.RoleAssistant)
	found := spokenLanguages{main: cmp.Or(users.main, before, assistant.main)}
	if !users.sure || !assistant.sure {
		return found
	}
	found.all = slices.AppendSeq(slices.Collect(maps.Keys(users.votes)), maps.Keys(assistant.votes))
	if before != "" {
		found.all = append(found.all, before)
	}
	return found
}

// languageVotes holds the detected languages of the messages of a role.
type languageVotes struct {
	votes map[string]int
	main  string // the language of most of them, of the newest five first; empty = not sure
	sure  bool   // no message is in another language than those of the votes
}

// countVotes detects the language of each message of the role, and of all of them
// together: a few words are easily mistaken for another language.
func countVotes(messages []core.Message, role core.Role) languageVotes {
	var all strings.Builder
	p := languageVotes{votes: map[string]int{}}
	for i := len(messages) - 1; i >= 0 && all.Len() < languageSample; i-- {
		if messages[i].Role != role {
			continue
		}
		text := strings.ToValidUTF8(withoutCode(core.Clip(messages[i].Content, languageSample)), "")
		text = core.Clip(text, languageHead)
		first, _, _ := strings.Cut(text, "\n") // later lines may be quoted
		all.WriteString(text + "\n")
		name := detectLanguage(first)
		if name == "" && len(first) < len(strings.TrimSpace(text)) {
			name = detectLanguage(text)
		}
		if name == "" {
			continue
		}
		p.votes[name]++
		if p.votes[p.main] < enoughVotes && (p.main == "" || p.votes[name] > p.votes[p.main]) {
			p.main = name
		}
	}
	together := detectLanguage(all.String())
	p.main = cmp.Or(p.main, together)
	p.sure = together != "" && together == p.main && weighLetters(all.String()) >= sureLetters
	return p
}

// withoutCode drops code: in fences, in backquotes, and words that look like it. Line
// breaks stay.
func withoutCode(text string) string {
	var b strings.Builder
	for line := range strings.Lines(dropEnclosed(dropEnclosed(text, "```"), "`")) {
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

// dropEnclosed drops the text between pairs of marks.
func dropEnclosed(text, mark string) string {
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

const (
	minLetters = 8 // of a text whose language is detected
	// weightLetter is the weight of a letter that is not Latin: texts in any language
	// contain names and code in Latin letters.
	weightLetter = 3
	shareKana    = 8 // at least one in so many letters of a Japanese text is kana
)

// countLetters returns how many letters of the text are Latin, how many are not, and how
// many of those are kana.
func countLetters(text string) (latin, other, kana int) {
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
	return latin, other, kana
}

// weighLetters returns the number of letters, with the weight of those that are not Latin.
func weighLetters(text string) int {
	latin, other, _ := countLetters(text)
	return latin + weightLetter*other
}

// detectLanguage returns the language of the text; empty = not sure.
func detectLanguage(text string) string {
	latin, other, kana := countLetters(text)
	if latin+weightLetter*other < minLetters || repeatsItself(text) {
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
	found := whatlanggo.DetectWithOptions(text, whatlanggo.Options{Whitelist: knownLanguages()})
	switch {
	case !found.IsReliable():
		return ""
	case found.Lang == whatlanggo.Cmn:
		return "Chinese"
	default:
		return found.Lang.String()
	}
}

// knownLanguages are the languages to choose from: the fewer there are, the shorter a text
// can be for a sure result.
func knownLanguages() map[whatlanggo.Lang]bool {
	known := map[whatlanggo.Lang]bool{}
	for _, lang := range []whatlanggo.Lang{
		whatlanggo.Eng, whatlanggo.Deu, whatlanggo.Fra, whatlanggo.Spa, whatlanggo.Por, whatlanggo.Ita, whatlanggo.Nld, whatlanggo.Pol,
		whatlanggo.Ces, whatlanggo.Hun, whatlanggo.Ron, whatlanggo.Swe, whatlanggo.Fin, whatlanggo.Tur, whatlanggo.Ind, whatlanggo.Vie,
		whatlanggo.Rus, whatlanggo.Ukr, whatlanggo.Ell, whatlanggo.Heb, whatlanggo.Arb, whatlanggo.Pes, whatlanggo.Urd,
		whatlanggo.Hin, whatlanggo.Mar, whatlanggo.Ben, whatlanggo.Tam, whatlanggo.Tha, whatlanggo.Cmn, whatlanggo.Jpn, whatlanggo.Kor,
	} {
		known[lang] = true
	}
	return known
}
