package standing

import (
	"slices"
	"strings"
	"sync"
)

// maxCompared is how many instructions, the newest, are compared by their slots, as it takes long.
const maxCompared = 30

// slots returns the kinds of the values of concepts. A kind is closed: an instruction has one value
// of it, which another one replaces, as the language of answers; but not an allergy, or what is
// forbidden.
//
//nolint:gochecknoglobals // immutable
var slots = sync.OnceValue(func() map[rune]string {
	return map[rune]string{
		tagOf("lang"): "language", tagOf("measure"): "unit", tagOf("currency"): "currency", tagOf("format"): "format",
		tagOf("shape"): "format", tagOf("tone"): "tone", tagOf("emoji"): "emoji", tagOf("soft"): "software",
	}
})

func tagOf(concept string) rune { return theLexicon().tags[concept] }

// slotPatterns tell what a sentence does to what fills a slot.
type slotPatterns struct {
	changes      patterns // a value may take the place of another one
	turns        patterns // it does, whatever the other one was
	rejects      patterns // what comes next is the value that goes
	joins        patterns // both values hold, or one only sometimes
	withdraws    patterns
	denies       patterns // it forbids its values
	isFact       patterns // it is about the user
	story        patterns // it is about others, the past, or something at hand
	raisesBudget patterns
	isMoney      patterns // its number is an amount of money
	isTooMuch    patterns // a number of something is not right
	namesTone    patterns
	namesBudget  patterns
	namesLength  patterns
	limitsLength patterns
}

func compileSlotPatterns() slotPatterns {
	one := func(pattern string) patterns { return compilePatterns([]string{pattern}) }
	return slotPatterns{
		changes: one(`[swap change nomore not no end noneed now lasting onward again too lets]`),
		turns:   one(`[swap change again lets]`),
		rejects: one(`[swap change lets nomore not no end noneed] .{0,2} $`), // "instead of", "no longer in"
		joins:   one(`if|[lang value] [and filler] [in det]* [lang value]`),  // "euros and dollars"
		withdraws: compilePatterns([]string{
			`^[^emoji]* (?:[end noneed nomore] [^emoji]* [lang value ceiling]|[lang value ceiling] [^emoji]* [end noneed nomore]) [^emoji]* $`, // "cancel the yen instruction"
			`emoji .{0,4} [ok again may]|[may again] .{0,4} emoji`,                                                                             // "emojis are fine again"
		}),
		denies:       one(`[not no never forbid cant ban]`),
		isFact:       one(`[i be have my]`),
		story:        one(`[he rel past said suppose what if once]|[verb change swap end make] this .`),
		raisesBudget: one(`budget .{0,4} [swap change] in* num`), // "the kitchen budget went up to 500"
		isMoney:      one(`num currency|currency num|budget .* num|num .* budget`),
		isTooMuch:    one(`^[lead please]* num [unit currency] .{0,3} too`), // "50 words is too short"
		namesTone:    one(`register .{0,3} tone|tone .{0,2} register`),
		namesBudget:  one(`^[^unit]* ceiling [^unit]* $`),
		namesLength:  one(`ceiling .{0,2} unit|unit .{0,2} ceiling`), // "the word limit"
		limitsLength: one(`limit .{0,3} num unit|num unit .{0,3} limit|order .{0,6} num unit`),
	}
}

// content is what an instruction says of closed kinds of values.
type content struct {
	reading
	values  map[string][]string // by kind, as they are written
	rejects []string            // values that others take the place of: "instead of dollars"
	things  []string            // that have the values: "prices"
	numbers []string
	units   []string // that length is counted in
	others  []string // words that the lexicon does not have
	isMoney bool     // a number is an amount of money
}

// contentOf returns the content of a text.
func contentOf(text string) content {
	readings := theLexicon().read(fold(maskQuotes(text)))
	if len(readings) == 0 {
		return content{}
	}
	return readings[0].content()
}

func (r reading) content() content {
	g := theGrammar()
	c := content{reading: r, values: map[string][]string{}, isMoney: g.isMoney.match(r.tags)}
	tags := []rune(r.tags)
	for i, tag := range tags {
		switch kind, phrase := slots()[tag], r.phrases[i]; {
		case tag == tagNumber, tag == tagOf("number"):
			c.numbers = append(c.numbers, phrase)
		case tag == tagOf("data"):
			c.things = append(c.things, phrase)
		case tag == tagOf("unit"):
			c.units = append(c.units, phrase)
		case tag == tagOther:
			c.others = append(c.others, phrase)
		case kind != "" && (kind != "currency" || !c.isMoney):
			c.values[kind] = append(c.values[kind], phrase)
			if g.rejects.match(string(tags[:i])) {
				c.rejects = append(c.rejects, phrase)
			}
		}
	}
	return c
}

// sameSlot returns the instruction that fills the same slot as the one that was found, if it is
// the only one.
func sameSlot(standing []Instruction, found Found) []Instruction {
	newer := contentOf(found.Text)
	isSame := newer.replaces
	if found.Withdraws {
		isSame = newer.withdraws
	} else if len(newer.values)+len(newer.numbers) == 0 || !newer.changes() {
		return nil
	}
	var out []Instruction
	sharing := 0
	for _, i := range standing[max(len(standing)-maxCompared, 0):] {
		older := contentOf(i.Text)
		if newer.sharesValue(older) {
			sharing++
		}
		if isSame(older) {
			out = append(out, i)
		}
	}
	if len(out) > 1 || sharing > 1 {
		return nil // it is not certain which one is meant
	}
	return out
}

// sharesValue reports whether both contents name the same value of a slot.
func (c content) sharesValue(older content) bool {
	for kind, values := range c.values {
		if common(values, older.values[kind]) > 0 {
			return true
		}
	}
	return false
}

// additions returns words that say in a language that an instruction stands beside an older one.
func additions(language string) string {
	switch language {
	case "en":
		return "also|too|additionally|both"
	case "de":
		return "auch|ebenfalls|zusaetzlich|ausserdem"
	case "fr":
		return "aussi|egalement"
	}
	return "tambien|ademas"
}

// changes reports whether one value takes the place of another one, always.
func (c content) changes() bool {
	g := theGrammar()
	adds := slices.ContainsFunc(c.phrases, func(p string) bool { return hasEntry(additions(c.language), p) })
	return !adds && g.changes.match(c.tags) && !g.joins.match(c.tags)
}

// replaces reports whether what the older content has in a slot gives way to the newer: the newer
// one names both values ("euros instead of dollars"), or there can be only one of them
// ("temperatures in Celsius", "temperatures in Kelvin now").
func (c content) replaces(older content) bool {
	g := theGrammar()
	if c.changesNumber(older) || c.raisesBudget(older) {
		return true
	}
	if g.denies.match(older.tags) || g.isFact.match(older.tags) {
		return false
	}
	if !c.hasAll(older.others) {
		return false // which say that it is about something in particular
	}
	for kind, values := range c.values {
		old := older.values[kind]
		if len(old) == 0 || len(older.numbers) > 0 {
			continue
		}
		isNew := common(values, old) < len(values) // some of them
		isOfAll := len(c.things) == 0 && (kind == "unit" || kind == "currency")
		isOfSame := sameThings(c.thingsOf(kind), older.thingsOf(kind))
		if isNew && (isOfAll || isOfSame) && common(c.rejects, old) > 0 || isOfSame && common(values, old) == 0 && c.hasOneOf(kind, older) {
			return true
		}
	}
	return false
}

// thingsOf returns what the values of the kind are of: comments have a language, too.
func (c content) thingsOf(kind string) []string {
	if kind == "language" {
		return append(slices.Clone(c.things), c.values["format"]...)
	}
	return c.things
}

// changesNumber reports whether the content names the older number and a new one, of words or
// the like, or of money for the same: "50 words is too short, make it 120".
func (c content) changesNumber(older content) bool {
	isOld := func(number string) bool { return slices.Contains(older.numbers, number) }
	isNew := func(number string) bool { return !isOld(number) }
	if !slices.ContainsFunc(c.numbers, isOld) || !slices.ContainsFunc(c.numbers, isNew) {
		return false
	}
	isLength := theGrammar().limitsLength.match(older.tags) && common(c.units, older.units) > 0 && common(c.others, older.others) == len(c.others)
	return isLength || older.isMoney && common(c.subjects(), older.subjects()) > 0
}

// subjects returns the words that tell what money is for.
func (c content) subjects() []string {
	return subjectTerms(TopicBudget, termsOf(strings.Join(c.phrases, " ")))
}

// raisesBudget reports whether the content says what the older budget for the same thing is now:
// "the kitchen budget went up to 500".
func (c content) raisesBudget(older content) bool {
	if !older.isMoney || !theGrammar().raisesBudget.match(c.tags) {
		return false
	}
	things := older.subjects()
	return len(things) > 0 && common(things, c.subjects()) == len(things)
}

// hasOneOf reports whether there can be only one value of the kind: of the same things, or as
// the language of answers, or as the tone if both call it so.
func (c content) hasOneOf(kind string, older content) bool {
	g := theGrammar()
	switch kind {
	case "unit", "currency":
		return len(c.things) > 0
	case "language":
		return len(c.things) > 0 || g.turns.match(c.tags)
	case "tone":
		return g.namesTone.match(c.tags) && g.namesTone.match(older.tags)
	}
	return false
}

// hasAll reports whether all these words are among those that the lexicon does not have.
func (c content) hasAll(words []string) bool { return common(words, c.others) == len(words) }

// sameThings reports whether all things of one are things of the other.
func sameThings(things, others []string) bool {
	return common(things, others) == len(things) && common(others, things) == len(others)
}

// withdraws reports whether the content takes back the older one: it names its only value, or
// that it limits length or money.
func (c content) withdraws(older content) bool {
	g := theGrammar()
	if g.isFact.match(older.tags) && !older.isMoney || len(c.things) > 0 && !sameThings(c.things, older.things) {
		return false
	}
	if g.namesBudget.match(c.tags) && older.isMoney ||
		g.namesLength.match(c.tags) && g.limitsLength.match(older.tags) && common(c.units, older.units) > 0 {
		return true
	}
	if !c.hasAll(older.others) {
		return false
	}
	for kind, values := range c.values {
		isEmoji := kind == "emoji" // which only what forbids it can be taken back of
		if isEmoji == g.denies.match(older.tags) && len(older.values) == 1 && common(older.values[kind], values) > 0 {
			return true
		}
	}
	return false
}

// examineSlots returns that the sentence may change or withdraw what fills a slot. It has no
// effect where nothing fills it.
func (r reading) examineSlots() (f Found, ok bool) {
	g, c := theGrammar(), r.content()
	f.Amends = len(c.numbers) > 1 && g.isTooMuch.match(r.tags) || g.raisesBudget.match(r.tags)
	hasSlot := f.Amends || len(c.values) > 0 || g.namesBudget.match(r.tags) || g.namesLength.match(r.tags)
	if !hasSlot || g.story.match(r.tags) {
		return f, false
	}
	for _, values := range c.values {
		f.Amends = f.Amends || len(values) > 1 && c.changes()
	}
	f.Withdraws = !f.Amends && g.withdraws.match(r.tags)
	return f, f.Amends || f.Withdraws
}
