package summarize

import (
	"math"
	"math/bits"
	"regexp"
	"slices"
	"strings"

	"bobbin/app/core/prompttext"
)

// evidence is what an answer is checked against.
type evidence struct {
	transcript string   // the summarized messages, as the model saw them
	previous   string   // the summary to extend; empty = none
	prompt     string   // our own words around both
	languages  []string // all that the conversation uses; empty = there may be others
	focused    bool     // the user asked for a summary of one subject above all
	minTokens  int      // of a summary
}

// What a summary has to be.
const (
	minTokens          = 40  // and at least one fiftieth of what it replaces
	sizeShare          = 50  // it keeps at least one in so many tokens of what it replaces
	maxParts           = 16  // into which the transcript is divided
	partBytes          = 128 // min size of such a part
	minParts           = 12  // from this number on an answer to the last message is recognized by the last part
	minGroundedUnits   = 8   // units of the transcript in it
	minTrigrams        = 10  // a shorter text may repeat itself
	grounding          = 15  // percent: the share of its units that are in the material, times the share of the material that they cover
	maxVocabulary      = 256 // a text shares units by chance with a transcript of so many different ones
	minVocabulary      = 16  // different words of a transcript that are enough to recognize its subject
	keptShare          = 14  // it keeps at least one in so many units of the previous summary
	minKeptWords       = 16  // a shorter previous summary need not be kept
	minNewUnits        = 3   // units of the transcript in a summary that extends the previous one, which has none of them
	minPairs           = 24  // a text of fewer different pairs of words may have its own
	minLooseVocabulary = 64  // different words of a transcript whose pairs a summary has some of
	newShare           = 16  // fewer are enough if it has not one in so many of the transcript's new ones
)

// minSummaryTokens returns how many tokens a summary must have: few for a short
// conversation, and never more than an eighth of what was asked for.
func minSummaryTokens(replaces, ask int) int {
	return min(max(minTokens, replaces/sizeShare), replaces/4, ask/8)
}

// checkText returns why the text is no summary of the evidence; nil = it may be one. It
// checks the form of the text and the words it shares, not their meaning, so that it
// works in every language.
func (e evidence) checkText(text string, tokens int) error {
	switch {
	case isEcho(text, e.transcript):
		return errEcho
	case hasForeignMarkup(text, e.transcript+e.previous):
		return errMarkup
	case isDialog(text):
		return errDialog
	case repeatsItself(text) && repeatsMoreThan(text, e.transcript):
		return errRepetition
	case tokens < e.minTokens:
		return errTooShort
	case e.isForeign(text):
		return errLanguage
	}
	if err := e.checkGrounding(text); err != nil {
		return err
	}
	if e.isLoose(text) {
		return errLoose
	}
	return nil
}

// isLoose reports whether no two words that follow each other in the text do so in its material, or no
// more often than in the reverse order, which is chance: it is a list of names, or the words of the
// conversation in any order.
func (e evidence) isLoose(text string) bool {
	if _, all := e.locateUnits(nil, 1); all < minLooseVocabulary {
		return false
	}
	const forth, back = 1, 2
	pairs := map[[2]string]int{}
	eachPair(text, func(first, second string) { pairs[[2]string{first, second}] = 0 })
	for _, material := range []string{e.transcript, e.previous} {
		eachPair(material, func(first, second string) {
			for order, p := range map[int][2]string{forth: {first, second}, back: {second, first}} {
				if found, ok := pairs[p]; ok {
					pairs[p] = found | order
				}
			}
		})
	}
	forward, backward := 0, 0
	for _, found := range pairs {
		forward += found & forth
		backward += found & back / back
	}
	return len(pairs) >= minPairs && (forward == 0 || backward > 1 && forward <= backward)
}

// eachPair calls yield for the words that follow each other in the text. Scripts without blanks have
// none.
func eachPair(text string, yield func(first, second string)) {
	last := ""
	eachWord(text, func(w textWord) {
		if w.dense {
			last = ""
			return
		}
		word := stemOf(w.text)
		if last != "" && last != word {
			yield(last, word)
		}
		last = word
	})
}

// isForeign reports whether the text is certainly in a language that the conversation
// does not use. A text most of whose words the conversation has is in no other language:
// the language of a list of words is easily mistaken.
func (e evidence) isForeign(text string) bool {
	text = withoutCode(text)
	name := detectLanguage(text)
	if name == "" || weighLetters(text) < sureLetters || len(e.languages) == 0 || slices.Contains(e.languages, name) {
		return false
	}
	units := unitsOf(text)
	found, _ := e.locateUnits(units, 1)
	return 2*len(found) <= len(units)
}

// checkGrounding returns why the text does not cover the transcript, or does not extend
// the previous summary; nil = it does. A unit of the text weighs more, the fewer parts of
// the transcript contain it: the common words of a language are in most. That matters
// little if the transcript has few units, which a text rarely shares by chance. Units of
// the last part that are not in most others do not count, as an answer to the last message
// consists of them. A summary that extends a previous one may add little.
func (e evidence) checkGrounding(text string) error {
	units := unitsOf(text)
	parts := min(max(len(e.transcript)/partBytes, 1), maxParts)
	found, all := e.locateUnits(units, parts)
	before, ours := unitsOf(e.previous), unitsOf(e.prompt)
	last := uint32(0)
	if parts >= minParts {
		last = 1 << (parts - 1)
	}
	grounded := groundedUnits{minWeight: 1 - float64(all)/maxVocabulary, covered: make([]float64, parts)}
	kept, echoed, asked := 0, 0, 0
	for unit := range units {
		where := found[unit]
		switch {
		case before[unit]:
			kept++
		case where == 0 && ours[unit]:
			echoed++
		case where&last != 0 && 2*bits.OnesCount32(where) <= parts:
			asked++
		case where != 0 && !ours[unit]:
			grounded.addUnit(where)
		}
	}
	extends := countWords(before) >= minKeptWords
	spread := grounded.coverage()
	if extends || 2*kept > len(units) {
		spread = 1
	}
	switch {
	case echoed > grounded.units+asked+kept && 2*echoed > len(units):
		return errPromptEcho
	case extends && kept*keptShare < len(before):
		return errForgotten
	case extends && grounded.units < min(minNewUnits, e.countNewUnits(before)/newShare):
		return errUngrounded
	case e.previous == "" && grounded.units < min(minGroundedUnits, 2*parts, all/4, len(units)/2):
		return errUngrounded
	case all >= minVocabulary && !e.focused && 100*(grounded.weight+float64(kept))*spread < grounding*float64(len(units)-asked):
		return errUngrounded
	default:
		return nil
	}
}

// countNewUnits returns how many units of the transcript are not in the previous summary,
// at most maxVocabulary; numbers do not count.
func (e evidence) countNewUnits(before map[string]bool) int {
	fresh := map[string]bool{}
	eachUnit(e.transcript, func(unit string, _ int) {
		if len(fresh) < maxVocabulary && !before[unit] {
			fresh[unit] = true
		}
	})
	return countWords(fresh)
}

// groundedUnits sums up the units of a text that a transcript contains.
type groundedUnits struct {
	units     int
	minWeight float64   // of a unit
	weight    float64   // of all: 1 for a unit of a single part, minWeight for one of all parts
	covered   []float64 // by part: the weight of its best unit
}

// addUnit counts a unit that is in the parts.
func (g *groundedUnits) addUnit(where uint32) {
	weight := 1.0
	if parts := len(g.covered); parts > 1 {
		weight = max(weight-math.Log(float64(bits.OnesCount32(where)))/math.Log(float64(parts)), g.minWeight)
	}
	g.units++
	g.weight += weight
	for part := range g.covered {
		if where&(1<<part) != 0 {
			g.covered[part] = max(g.covered[part], weight)
		}
	}
}

// coverage returns the share of the transcript that the units cover.
func (g *groundedUnits) coverage() float64 {
	sum := 0.0
	for _, weight := range g.covered {
		sum += weight
	}
	return sum / float64(len(g.covered))
}

// locateUnits returns the parts of the transcript that contain the units, a bit each, and
// how many units the transcript has, at most maxVocabulary.
func (e evidence) locateUnits(units map[string]bool, parts int) (found map[string]uint32, all int) {
	found = map[string]uint32{}
	different := map[string]bool{}
	eachUnit(e.transcript, func(unit string, at int) {
		if units[unit] {
			found[unit] |= 1 << (at * parts / len(e.transcript))
		}
		if len(different) < maxVocabulary {
			different[unit] = true
		}
	})
	return found, countWords(different)
}

// countWords returns how many of the units are not numbers.
func countWords(units map[string]bool) int {
	n := 0
	for unit := range units {
		if unit[0] < '0' || unit[0] > '9' {
			n++
		}
	}
	return n
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

// The names of the speakers of a dialog.
var (
	speakerLabel = regexp.MustCompile(`(?m)^[ \t>]*(?:\*\*|\[\d+\] ?)?(\pL[\pL\pM ._-]{0,23}?)(?:\*\*)?[ \t]*[:：]`)
	userRole     = regexp.MustCompile(`(?i)^(user|human|customer|benutzer(in)?|nutzer(in)?|usuari[oa]|utilisateur|utilisatrice|utente|usuário|gebruiker|пользователь|користувач|用户|使用者|ユーザー|사용자|مستخدم|المستخدم)$`)
	aiRole       = regexp.MustCompile(`(?i)^(assistant|ai|bot|model|assistent(in)?|asistente|assistente|ассистент|асистент|помощник|助手|助理|アシスタント|어시스턴트|المساعد)$`)
)

// isDialog reports whether the text continues the conversation: it has lines of both
// speakers, or several lines of exactly two.
func isDialog(text string) bool {
	if at := turnLine.FindStringIndex(text); at != nil && at[0] == 0 {
		return true
	}
	speakers, lines := map[string]int{}, 0
	user, ai := false, false
	for _, m := range speakerLabel.FindAllStringSubmatch(text, -1) {
		name := strings.TrimSpace(m[1])
		speakers[name]++
		lines++
		user, ai = user || userRole.MatchString(name), ai || aiRole.MatchString(name)
	}
	return user && ai || lines >= 4 && len(speakers) == 2
}

// repeatsItself reports whether less than half of the text's sequences of three words
// (three letters in scripts without blanks) are different.
func repeatsItself(text string) bool {
	different, all := countTrigrams(text)
	return all >= minTrigrams && 2*different < all
}

// repeatsMoreThan reports whether the text repeats itself more than the transcript does: a
// summary of repetitive messages may repeat itself.
func repeatsMoreThan(text, transcript string) bool {
	different, all := countTrigrams(text)
	theirs, allTheirs := countTrigrams(transcript)
	return different*allTheirs < theirs*all
}

// countTrigrams returns how many different sequences of three words the text has, and how
// many in all.
func countTrigrams(text string) (different, all int) {
	var words []string
	eachWord(strings.ToLower(text), func(w textWord) {
		if !w.dense {
			words = append(words, w.text)
			return
		}
		for _, r := range w.text {
			words = append(words, string(r))
		}
	})
	seen := map[[3]string]bool{}
	for i := 2; i < len(words); i++ {
		seen[[3]string(words[i-2:])] = true
	}
	return len(seen), max(len(words)-2, 0)
}
