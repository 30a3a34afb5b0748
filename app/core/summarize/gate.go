package summarize

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/llm"
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
	minTokens     = 40  // and at least one fiftieth of what it replaces
	sizeShare     = 50  // it keeps at least one in so many tokens of what it replaces
	maxParts      = 16  // into which the messages are divided
	partBytes     = 128 // min size of such a part
	minParts      = 12  // from this number on an answer to the last message is recognized by the last part
	minGrounded   = 8   // units of the messages in it
	grounding     = 14  // percent: the share of its units that are in the material, times the share of the material that they cover
	maxVocabulary = 256 // a text shares units by chance with messages of so many different ones
	minVocabulary = 16  // different units of messages that are enough to recognize their subject
	minEarlier    = 16  // units of an earlier summary that has to be kept
	keptShare     = 15  // it keeps at least one in so many of them
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
	parts := min(max(len(e.transcript)/partBytes, 1), maxParts)
	c := comparison{answer: readWords(text, 1), said: readWords(e.transcript, parts), earlier: readWords(e.previous, 1), parts: parts}
	c.compareUnits(readWords(e.prompt, 1))
	a, b, echoed := c.answer, c.said, c.answer.commonPairs(c.said)
	switch {
	case 10*echoed > 8*len(a.pairs) && 2*echoed > len(b.pairs):
		return errEcho
	case hasForeignMarkup(text, e.transcript+e.previous):
		return errMarkup
	case isDialog(text):
		return errDialog
	case a.all >= minRepeated && repeatShare*len(a.pairs) <= a.all && len(a.pairs)*b.all < len(b.pairs)*a.all: // more than the messages do
		return errRepetition
	case tokens < e.minTokens:
		return errTooShort
	case c.extends() && c.kept*keptShare < len(c.earlier.units):
		return errForgotten
	case c.saysTooLittle(), c.isLoose():
		return errUngrounded
	default:
		return nil
	}
}

// comparison is what the words of an answer have in common with its material.
type comparison struct {
	answer, said, earlier words
	parts                 int // of said

	// Units of the answer by where else they are: in the earlier summary, in the last part of the
	// messages and not in most others, elsewhere in the messages.
	kept, last, grounded int
	weight               float64 // of those elsewhere
	spread               float64 // the share of the messages that they cover
}

// compareUnits counts the units of the answer. One weighs more, the fewer parts of the messages contain
// it: the common words of a language are in most. That matters little if the messages have few units,
// which a text rarely shares by chance. Those of the last part alone do not count, as an answer to the
// last message consists of them, nor those of our own words, which any answer may repeat.
func (c *comparison) compareUnits(ours words) {
	last, covered := uint32(0), make([]float64, c.parts)
	if c.parts >= minParts {
		last = 1 << (c.parts - 1)
	}
	for unit := range c.answer.units {
		where := c.said.units[unit]
		n := bits.OnesCount32(where)
		switch {
		case c.earlier.units[unit] != 0:
			c.kept++
		case where&last != 0 && 2*n <= c.parts:
			c.last++
		case where != 0 && ours.units[unit] == 0:
			weight := 1.0
			if c.parts > 1 {
				weight = max(1-math.Log(float64(n))/math.Log(float64(c.parts)), 1-float64(c.said.named)/maxVocabulary, 0)
			}
			c.grounded++
			c.weight += weight
			for part := range covered {
				if where&(1<<part) != 0 {
					covered[part] = max(covered[part], weight)
				}
			}
		}
	}
	for _, weight := range covered {
		c.spread += weight / float64(c.parts)
	}
	if c.extends() || 2*c.kept > len(c.answer.units) { // it may add little
		c.spread = 1
	}
}

// countShared returns how many units of the answer its material has.
func (c *comparison) countShared() int { return c.kept + c.last + c.grounded }

// extends reports whether the earlier summary is long enough to be kept.
func (c *comparison) extends() bool { return c.earlier.named >= minEarlier }

// saysTooLittle reports whether the answer tells too little of the messages, or of what the earlier summary does not.
func (c *comparison) saysTooLittle() bool {
	told, least := c.grounded, 0
	switch {
	case c.extends():
		fresh := 0
		for unit := range c.said.units {
			if c.earlier.units[unit] == 0 && !isNumber(unit) {
				fresh++
			}
		}
		told += c.answer.commonPairs(c.said, c.earlier) - c.answer.commonPairs(c.earlier)
		least = min(minNew, fresh/newShare)
	case len(c.earlier.units) == 0:
		least = min(minGrounded, 2*c.parts, c.said.named/4, len(c.answer.units)/2)
	}
	return told < least ||
		c.said.named >= minVocabulary && 100*(c.weight+float64(c.kept))*c.spread < grounding*float64(len(c.answer.units)-c.last)
}

// isLoose reports whether the words of the answer are those of its material, but do not follow each
// other as they do there: it is a list of names, or the words of the conversation in any order.
func (c *comparison) isLoose() bool {
	found := c.answer.commonPairs(c.said, c.earlier)
	return len(c.said.pairs) >= minPairs && 2*c.countShared() > len(c.answer.units) && looseShare*found*len(c.answer.units) < len(c.answer.pairs)*c.countShared()
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

// isDense reports whether the letter is of a script without blanks, or one that joins its words.
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

// rejection says why an answer is not a summary: in a word that can be counted
// (Result.Cause), and in a sentence for the second request and the stored Note. Neither holds
// anything of the answer.
type rejection struct{ cause, reason string }

// Error returns the reason.
func (r rejection) Error() string { return r.reason }

var (
	errNothing       = rejection{"refused", "there was nothing to summarize"}
	errWindow        = rejection{"refused", "the context window of the summary model is too small"}
	errEmpty         = rejection{"empty", "the answer was empty"}
	errReasoningOnly = rejection{"reasoning_only", "the answer was reasoning only"}
	errNotEnded      = rejection{"refused", "the answer did not end normally"}
	errCutOff        = rejection{"cut_off", "the answer was cut off at the output limit"}
	errToolCall      = rejection{"tool_call", "the answer called a tool"}
	errNotSmaller    = rejection{"not_smaller", "the summary was not smaller than what it replaces"}
	errMarkup        = rejection{"markup", "the answer contained markup or data that is in no message"}
	errDialog        = rejection{"dialog", "the answer continued the conversation"}
	errEcho          = rejection{"echo", "the answer repeated the transcript"}
	errRepetition    = rejection{"repetition", "the answer repeated itself"}
	errTooShort      = rejection{"too_short", "the answer was too short for what it replaces"}
	errUngrounded    = rejection{"ungrounded", "the answer said too little about the messages"}
	errForgotten     = rejection{"forgotten", "the answer left out the earlier summary"}
	errTimeLimit     = rejection{"time_limit", "the summary took longer than its time limit"} // of a context that Request.TimeLimit ended
	errSecrets       = rejection{"refused", "it repeats secrets, or has characters that cannot be stored"}
)

// rejectionOf returns why a strategy was abandoned; of a failed call only the kind, as a provider's text is not public.
func rejectionOf(err error) (r rejection) {
	switch e := llm.AsError(err); {
	case errors.As(err, &r):
		return r
	case e != nil:
		return rejection{"model_" + string(e.Kind), fmt.Sprintf("the model failed (%s)", e.Kind)}
	default:
		return rejection{"strategy", "the strategy failed"}
	}
}

// acceptAnswer returns the text of an answer that ended normally and is not empty, or why
// it is refused. Adapters translate known reasons to FinishStop and FinishLength; the others are
// reasons that some providers of the OpenAI dialect send.
func acceptAnswer(res llm.Response) (string, error) {
	if len(res.ToolCalls) > 0 {
		return "", errToolCall
	}
	switch strings.ToLower(string(res.Finish)) {
	case string(core.FinishStop), "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed":
	case string(core.FinishToolCalls):
		return "", errToolCall
	case string(core.FinishLength), "max_tokens", "max_output_tokens", "model_length":
		return "", errCutOff
	default:
		return "", errNotEnded
	}
	text := cleanAnswer(res.Text)
	switch {
	case text == "" && (strings.TrimSpace(res.Text) != "" || res.Reasoning != ""):
		return "", errReasoningOnly
	case text == "":
		return "", errEmpty
	}
	return text, nil
}

// cleanAnswer removes what models put around an answer: thoughts written as text, a code
// fence around the whole, our own summary tags. Thoughts without an end tag are the whole
// text: the answer is empty.
func cleanAnswer(text string) string {
	text, _ = llm.CutThoughts(strings.ToValidUTF8(text, "\uFFFD"))
	text = prompttext.Unfenced(strings.TrimSpace(text))
	const open = "<summary>"
	if len(text) >= len(open) && strings.EqualFold(text[:len(open)], open) {
		text = text[len(open):]
	}
	return strings.TrimSpace(strings.TrimSuffix(text, "</summary>"))
}
