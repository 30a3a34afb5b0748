package summarize

import (
	"cmp"
	"embed"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"text/template"
	"unicode"

	"github.com/abadojack/whatlanggo"

	"bobbin/app/core"
)

//go:embed prompts/*.md
var promptFiles embed.FS

// templates are the prompt files.
//
//nolint:gochecknoglobals // immutable
var templates = sync.OnceValue(func() *template.Template { return template.Must(template.ParseFS(promptFiles, "prompts/*.md")) })

// systemData fills a preset's file. It depends on the policy alone, so that the
// system text is the same from call to call and providers can cache it.
type systemData struct {
	Tokens int  // to ask for
	Ledger bool // code appends the lists
}

// requestData fills request.md and shorten.md.
type requestData struct {
	Previous   string
	Transcript string
	Focus      string
	Speakers   bool   // messages begin with the names of users
	Language   string // empty = not sure
	Tokens     int    // to ask for
	Length     string // the same in words or characters
	Have       int    // shorten.md: tokens of the text that is too long
	Rejected   string // why the last answer was refused
}

// lengthOf returns a number of tokens in units that a model can count: words or characters.
func lengthOf(tokens int, language string) string {
	unit := "words"
	switch language {
	case "Chinese", "Japanese", "Thai":
		unit = "characters"
	}
	n := tokens * 7 / 10
	if n > 100 {
		n -= n % 10
	}
	return fmt.Sprintf("%d %s", max(n, 1), unit)
}

func renderRequest(data requestData) string {
	data.Length = lengthOf(data.Tokens, data.Language)
	return renderFile("request.md", data)
}

// renderFile renders a file. It panics on an error: tests render all of them.
func renderFile(file string, data any) string {
	var b strings.Builder
	if err := templates().ExecuteTemplate(&b, file, data); err != nil {
		panic(fmt.Sprintf("summarize: prompt %s: %v", file, err))
	}
	return strings.TrimSpace(b.String())
}

// How much text is examined, in bytes: of the newest messages of a role, and of one message.
const (
	languageSample = 2_000
	languageHead   = 400
)

// languageOf returns the language of a conversation; empty = not sure. The users' messages count
// first, then the previous summary, which is in the conversation's language, the assistant's last.
func languageOf(messages []core.Message, previous string) string {
	if spoken := spokenLanguage(messages, core.RoleUser); spoken != "" {
		return spoken
	}
	return cmp.Or(detectLanguage(withoutCode(newLedger().parse(previous))), spokenLanguage(messages, core.RoleAssistant))
}

// spokenLanguage returns the language of the newest messages of the role, of which the first lines
// count, as later ones may be quoted; empty = not sure.
func spokenLanguage(messages []core.Message, role core.Role) string {
	var heads strings.Builder
	for i := len(messages) - 1; i >= 0 && heads.Len() < languageSample; i-- {
		if messages[i].Role == role {
			first, _, _ := strings.Cut(strings.TrimSpace(withoutCode(core.Clip(messages[i].Content, languageSample))), "\n")
			heads.WriteString(core.Clip(strings.ToValidUTF8(first, ""), languageHead) + "\n")
		}
	}
	return detectLanguage(heads.String())
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
