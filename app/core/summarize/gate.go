package summarize

import (
	"regexp"
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
	minTokens        = 40 // and at least one fiftieth of what it replaces
	sizeShare        = 50 // it keeps at least one in so many tokens of what it replaces
	minMaterialPairs = 64 // different word pairs of messages whose summary has some of them
	pairShare        = 50 // one in so many of a summary's word pairs is in its material; fewer are chance
	minEarlierPairs  = 16 // of an earlier summary of which something has to be kept
	minRepeated      = 10 // word pairs of a text that can repeat itself
	repeatShare      = 8  // of them one in so many is different from the others, or the text repeats itself
)

// minSummaryTokens returns how many tokens a summary must have: few for a short
// conversation, and never more than an eighth of what was asked for.
func minSummaryTokens(replaces, ask int) int {
	return min(max(minTokens, replaces/sizeShare), replaces/4, ask/8)
}

// checkText returns why the text is no summary of the evidence; nil = it may be one. It checks the
// form of the text, and which of its words follow each other in its material, not their meaning, so
// that it works in every language.
func (e evidence) checkText(text string, tokens int) error {
	pairs, all := pairsOf(text)
	messages, allMessages := pairsOf(e.transcript)
	earlier, _ := pairsOf(e.previous)
	ours, _ := pairsOf(e.prompt)
	said, kept, fresh, own, backward := 0, 0, 0, 0, 0
	for p := range pairs {
		switch {
		case earlier[p]:
			kept++
		case messages[p]:
			fresh++
		case ours[p]:
			own++
		case messages[p.reversed()] || earlier[p.reversed()]:
			backward++
		}
		if messages[p] {
			said++
		}
	}
	switch {
	case strings.Contains(text, "transcript>") && (strings.Contains(text, "<transcript>") || strings.Contains(text, "</transcript>")),
		10*said > 8*len(pairs) && 2*said > len(messages):
		return errEcho
	case hasForeignMarkup(text, e.transcript+e.previous):
		return errMarkup
	case isDialog(text):
		return errDialog
	case all >= minRepeated && repeatShare*len(pairs) <= all && len(pairs)*allMessages < len(messages)*all:
		return errRepetition
	case 2*own > len(pairs):
		return errPromptEcho
	case tokens < e.minTokens:
		return errTooShort
	case len(messages) < minMaterialPairs:
		return nil
	case pairShare*(kept+fresh) < len(pairs) || kept+fresh == 0 || backward > 1 && kept+fresh <= backward:
		return errUngrounded
	case len(earlier) >= minEarlierPairs && kept == 0:
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
// several lines of exactly two speakers.
func isDialog(text string) bool {
	if at := turnLine.FindStringIndex(text); at != nil && at[0] == 0 {
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

func (p wordPair) reversed() wordPair {
	if p[2] == "" {
		return wordPair{p[1], p[0]}
	}
	return wordPair{p[2], p[1], p[0]}
}

// wordStem is how many letters most forms of a word share.
const wordStem = 5

// pairsOf returns the different word pairs of a text, and how many there are in all.
func pairsOf(text string) (pairs map[wordPair]bool, all int) {
	pairs = map[wordPair]bool{}
	before, last, letters := "", "", 0 // letters of a script without blanks in a row
	add := func(word string, isLetter bool) {
		pair := wordPair{last, word}
		if isLetter {
			pair = wordPair{before, last, word}
			letters++
		}
		if isLetter && letters > 2 || !isLetter && letters == 0 && last != "" && last != word {
			pairs[pair] = true
			all++
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
			add(stemOf(text[start:i]), false)
			start = -1
		case inWord && start < 0:
			start = i
		}
		if dense {
			add(string(r), true)
		}
	}
	return pairs, all
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
