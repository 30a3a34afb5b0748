package summarize

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"bobbin/app/core/prompttext"
)

// evidence is what an answer is checked against.
type evidence struct {
	transcript string // the summarized messages, as the model saw them
	previous   string // the summary to extend; empty = none
	prompt     string // our own words around both
	minTokens  int    // of a summary
}

// What a summary has to be.
const (
	minTokens   = 40 // and at least one fiftieth of what it replaces
	sizeShare   = 50 // it keeps at least one in so many tokens of what it replaces
	minPairs    = 64 // word pairs of the messages, or of an earlier summary, of which it has some
	manyTurns   = 3  // lines that begin like messages
	minRepeated = 10 // word pairs of a text that can repeat itself
	repeatShare = 8  // of them one in so many is different from the others, or the text repeats itself
)

// minSummaryTokens returns how many tokens a summary must have: few for a short
// conversation, and never more than an eighth of what was asked for.
func minSummaryTokens(replaces, ask int) int {
	return min(max(minTokens, replaces/sizeShare), replaces/4, ask/8)
}

// checkText returns why the text is no summary of the evidence; nil = it may be one. It checks the
// form of the text, not its meaning, and that some of its words follow each other as they do in the
// messages, and in the earlier summary, so that it works in every language.
func (e evidence) checkText(text string, tokens int) error {
	answer, said, earlier, ours := readWords(text), readWords(e.transcript), readWords(e.previous), readWords(e.prompt)
	echoed := answer.countShared(said)
	switch {
	case 10*echoed > 8*len(answer.pairs) && 2*echoed > len(said.pairs):
		return errEcho
	case hasForeignMarkup(text, e.transcript+e.previous):
		return errMarkup
	case isDialog(text):
		return errDialog
	case answer.repeatsMoreThan(said):
		return errRepetition
	case tokens < e.minTokens:
		return errTooShort
	case said.countShared(said, earlier, ours) >= minPairs && answer.countShared(said, earlier, ours) == 0:
		return errUngrounded
	case len(earlier.pairs) >= minPairs && answer.countShared(earlier) == 0:
		return errForgotten
	default:
		return nil
	}
}

// Markup that no summary has: tags, tokens of chat templates, and JSON.
var (
	tags      = regexp.MustCompile("(?:^|[^\\pL\\pN`])" + `(</?[a-zA-Z][\w:=-]*(?:\s[^<>\n]{0,200})?/?>|<[|｜][^<>\n]{1,80}[|｜]>|<!\w+|\[/?[A-Z_]{4,20}\]|<<?/?[A-Z]{3,8}>>?)`)
	jsonStart = regexp.MustCompile(`^\s*[{\[]\s*[{"]`)
)

// hasForeignMarkup reports whether the text holds markup that its material does not: the
// summary of a conversation about a web page or chat templates may quote a tag. The
// material is already escaped, and the summary is escaped before it is sent.
func hasForeignMarkup(text, material string) bool {
	for _, tag := range tags.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(material, tag[1]) && !strings.Contains(material, prompttext.Harmless(tag[1])) {
			return true
		}
	}
	return jsonStart.MatchString(text)
}

var speakerLabel = regexp.MustCompile(`(?m)^[ \t>]*(?:\*\*|\[\d+\] ?)?(\pL[\pL\pM ._-]{0,23}?)(?:\*\*)?[ \t]*[:：]`)

// isDialog reports whether the text continues the conversation: it begins like a message, or has
// several such lines, or several lines of exactly two speakers.
func isDialog(text string) bool {
	if at := turnLine.FindAllStringIndex(text, manyTurns); len(at) == manyTurns || at != nil && at[0][0] == 0 {
		return true
	}
	speakers, lines := map[string]bool{}, speakerLabel.FindAllStringSubmatch(text, -1)
	for _, m := range lines {
		speakers[strings.TrimSpace(m[1])] = true
	}
	return len(lines) >= 4 && len(speakers) == 2
}

// wordStem is how many letters most forms of a word share.
const wordStem = 5

// words is what is known of the words of a text.
type words struct {
	pairs map[[2]string]bool // that follow each other
	all   int                // pairs, also the same ones
}

// countShared returns how many pairs of the text the source has, too, and none of the others.
func (w words) countShared(source words, others ...words) int {
	n := 0
	for pair := range w.pairs {
		if source.pairs[pair] && !slices.ContainsFunc(others, func(o words) bool { return o.pairs[pair] }) {
			n++
		}
	}
	return n
}

// repeatsMoreThan reports whether the text repeats itself, and more than the other one does: a summary of
// repetitive messages may repeat itself.
func (w words) repeatsMoreThan(other words) bool {
	return w.all >= minRepeated && repeatShare*len(w.pairs) <= w.all && len(w.pairs)*other.all < len(other.pairs)*w.all
}

// readWords reads the words of a text: their beginnings, and every two letters of a script that is
// written without blanks.
func readWords(text string) words {
	w := words{pairs: map[[2]string]bool{}}
	last, letter := "", ""
	add := func(word string) {
		if last != "" {
			w.all++
			if last != word {
				w.pairs[[2]string{last, word}] = true
			}
		}
		last = word
	}
	start := -1
	for i, r := range text + " " {
		dense := isDense(r)
		inWord := !dense && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r))
		switch {
		case !inWord && start >= 0:
			add(stemOf(text[start:i]))
			start, letter = -1, ""
		case inWord && start < 0:
			start = i
		}
		if dense {
			if letter != "" {
				add(letter + string(r))
			}
			letter = string(r)
		}
	}
	return w
}

// isDense reports whether the letter is of a script that is written without blanks, or
// that joins its words.
func isDense(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
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
