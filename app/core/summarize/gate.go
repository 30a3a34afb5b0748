package summarize

import (
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"bobbin/app/core/prompttext"
)

// evidence is what an answer is checked against.
type evidence struct {
	transcript string   // the summarized messages, as the model saw them
	previous   string   // the summary to extend; empty = none
	languages  []string // of the conversation
	minTokens  int      // of a summary
}

// What a summary has to be.
const (
	minTokens     = 40  // and at least one fiftieth of what it replaces
	sizeShare     = 50  // it keeps at least one in so many tokens of what it replaces
	maxParts      = 16  // into which the messages are divided
	partBytes     = 128 // min size of such a part
	minGrounding  = 33  // percent: what its words of the material weigh, see compare
	keptWeight    = 200 // percent, of a unit that the earlier summary has
	pairWeight    = 150 // percent, of the share of its word pairs that the material has
	minVocabulary = 16  // units of the messages, or of an earlier summary, that are enough for a comparison
	keptShare     = 15  // it keeps at least one in so many units of an earlier summary
	minNew        = 5   // units and pairs of the messages in a summary that extends an earlier one, which has none of them
	newShare      = 8   // fewer are enough if the messages have fewer than so many new units for each
	manyTurns     = 3   // lines that begin like messages
	minPairs      = 64  // word pairs of messages whose summary has some of them
	looseShare    = 14  // one in so many pairs of a text that has only words of its material
	minRepeated   = 10  // word pairs of a text that can repeat itself
	repeatShare   = 8   // of them one in so many is different from the others, or the text repeats itself
)

// minSummaryTokens returns how many tokens a summary must have: few for a short
// conversation, and never more than an eighth of what was asked for.
func minSummaryTokens(replaces, ask int) int {
	return min(max(minTokens, replaces/sizeShare), replaces/4, ask/8)
}

// checkText returns why the text is no summary of the evidence; nil = it may be one. It checks the
// form of the text, and the words that it shares with its material, not their meaning, so that it
// works in every language.
func (e evidence) checkText(text string, tokens int) error {
	answer, said := readWords(text, 1), readWords(e.transcript, min(max(len(e.transcript)/partBytes, 1), maxParts))
	echoed := answer.commonPairs(said)
	switch {
	case strings.Contains(text, "<transcript>") || strings.Contains(text, "</transcript>"),
		10*echoed > 8*len(answer.pairs) && 2*echoed > len(said.pairs):
		return errEcho
	case hasForeignMarkup(text, e.transcript+e.previous):
		return errMarkup
	case isDialog(text):
		return errDialog
	case answer.repeatsMoreThan(said):
		return errRepetition
	case tokens < e.minTokens:
		return errTooShort
	default:
		return e.compare(text, answer, said)
	}
}

// compare returns why a text with the words of the answer is no summary of what was said that extends the
// earlier one. A unit weighs more, the fewer parts of the messages have it: the common words of a language
// are in most. An answer to the last message consists of those of the last part, which do not count.
func (e evidence) compare(text string, answer, said words) error {
	earlier := readWords(e.previous, 1)
	kept, told, weight := 0, 0, 0
	for unit := range answer.units {
		where := said.units[unit]
		switch {
		case earlier.units[unit] != 0:
			kept++
			weight += keptWeight
		case where != 0:
			if told++; where != 1<<(maxParts-1) {
				weight += 100 / bits.OnesCount32(where)
			}
		}
	}
	units, pairs, shared := max(len(answer.units), 1), max(len(answer.pairs), 1), kept+told
	found := answer.commonPairs(said, earlier)
	if 2*shared <= units && e.isForeign(text) {
		return errLanguage
	}
	if earlier.named >= minVocabulary {
		fresh := 0 // units of the messages that the earlier summary does not have
		for unit := range said.units {
			if earlier.units[unit] == 0 && !isNumber(unit) {
				fresh++
			}
		}
		switch {
		case kept*keptShare < len(earlier.units):
			return errForgotten
		case told+found-answer.commonPairs(earlier) < min(minNew, fresh/newShare):
			return errUngrounded
		}
	}
	// A list of names, or the words of the conversation in any order, has pairs that are not there.
	isLoose := len(said.pairs) >= minPairs && 2*shared > units && looseShare*found*units < pairs*shared
	if isLoose || said.named >= minVocabulary && weight*pairs+pairWeight*found*units < minGrounding*units*pairs {
		return errUngrounded
	}
	return nil
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

// wordPair is two words that follow each other, or three letters of a script without blanks.
type wordPair [3]string

// wordStem is how many letters most forms of a word share.
const wordStem = 5

// words is what is known of the words of a text.
type words struct {
	pairs map[wordPair]bool // that follow each other
	all   int               // pairs, also the same ones
	units map[string]uint32 // what carries a subject (longer words, numbers, two letters of a script without blanks) → the parts of the text that have it, a bit each
	named int               // units that are no numbers
}

// commonPairs returns how many pairs of the text are in one of the others, too.
func (w words) commonPairs(others ...words) int {
	n := 0
	for p := range w.pairs {
		if slices.ContainsFunc(others, func(o words) bool { return o.pairs[p] }) {
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

// readWords reads the words of a text, which is divided into so many parts.
func readWords(text string, parts int) words {
	w := words{pairs: map[wordPair]bool{}, units: map[string]uint32{}}
	before, last, letters := "", "", 0 // letters of a script without blanks in a row
	add := func(word string, at int, isLetter, isUnit bool) {
		pair, unit := wordPair{last, word}, word
		if isLetter {
			pair, unit = wordPair{before, last, word}, last+word
			letters++
			isUnit = letters > 1
		}
		if isUnit {
			if w.units[unit] == 0 && !isNumber(unit) {
				w.named++
			}
			w.units[unit] |= 1 << (at * parts / len(text))
		}
		if isLetter && letters > 2 || !isLetter && letters == 0 && last != "" {
			w.all++
			if last != word {
				w.pairs[pair] = true
			}
		}
		if !isLetter {
			letters = 0
		}
		before, last = last, word
	}
	start := -1
	for i, r := range text + " " {
		dense := isDense(r)
		inWord := !dense && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r))
		switch {
		case !inWord && start >= 0:
			word := text[start:i]
			add(stemOf(word), start, false, utf8.RuneCountInString(word) >= wordStem || len(word) > 1 && unicode.IsDigit(rune(word[0])))
			start = -1
		case inWord && start < 0:
			start = i
		}
		if dense {
			add(string(r), i, true, false)
		}
	}
	return w
}

// isDense reports whether the letter is of a script that is written without blanks, or
// that joins its words.
func isDense(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

func isNumber(unit string) bool { return unicode.IsDigit(rune(unit[0])) }

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
