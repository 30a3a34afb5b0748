package standing

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"
)

// rulesText holds the words and rules of each language; its head says how they are written.
//
//go:embed rules.txt
var rulesText string

// rule is a sequence of words that a part of a sentence has.
type rule []element

// element stands for words of a rule.
type element struct {
	words                   map[string]bool
	beginnings, parts, ends []string
	alternatives            []rule // of a name
	notOf                   *language
	isOptional, isGap       bool // a gap is of up to maxGap words, without commas
	isAny, isAtTheEnd       bool
	crosses                 bool
}

// maxGap is how many words ".." stands for.
const maxGap = 7

// language has the rules of a language.
type language struct {
	name  string
	named map[string][]rule
	// signals has the rules of a kind by words of which they need one; "" has those that need none.
	signals  map[string]map[string][]rule
	common   map[string]bool // all words of the rules
	isJoined bool            // it has no blanks between words, or words with many endings
}

//nolint:gochecknoglobals // immutable
var languages = sync.OnceValue(func() []*language { return parseRules(rulesText) })

// The kinds of rules; all other names are words for these.
const (
	kindSet      = "set"      // it sets something
	kindWithdraw = "withdraw" // it takes something back
	kindAmend    = "amend"    // it changes something, in words that say nothing alone
	kindAsk      = "ask"      // it sets something if it is asked for
	kindNever    = "never"    // it is none, whatever else it looks like
	kindRequest  = "request"  // the beginning of a question that asks for what follows
	kindLead     = "lead"     // words before what a sentence says
)

func parseRules(text string) []*language {
	var out []*language
	var l *language
	var kind string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if strings.HasPrefix(line, "== ") {
			l = &language{name: line[3:], named: map[string][]rule{}, common: map[string]bool{}, signals: map[string]map[string][]rule{}}
			out = append(out, l)
			continue
		}
		if name, rest, ok := strings.Cut(line, ": "); ok {
			kind, line = name, rest
		}
		for part := range strings.SplitSeq(line, " | ") {
			l.named[kind] = append(l.named[kind], l.parseRule(part))
		}
	}
	for _, l := range out {
		for _, kind := range []string{kindSet, kindWithdraw, kindAmend, kindAsk, kindNever, kindRequest, kindLead} {
			l.signals[kind] = map[string][]rule{}
			for _, r := range l.named[kind] {
				signals := l.signalsOf(r)
				if signals == nil { // it is tried with every sentence
					signals = map[string]bool{"": true}
				}
				for w := range signals {
					l.signals[kind][w] = append(l.signals[kind][w], r)
				}
			}
		}
	}
	return out
}

// parseRule returns the rule. Names must stand above it.
func (l *language) parseRule(text string) rule {
	var out rule
	for word := range strings.FieldsSeq(text) {
		e := element{words: map[string]bool{}}
		word, e.isOptional = strings.CutSuffix(word, "?")
		switch {
		case word == "..", word == "...":
			e.isGap, e.crosses = true, word == "..."
		case word == "_":
			e.isAny = true
		case word == "<v>":
			e.isAny, e.notOf = true, l
		case word == "$":
			e.isAtTheEnd = true
		default:
			l.parseWords(&e, word)
		}
		out = append(out, e)
	}
	return out
}

func (l *language) parseWords(e *element, word string) {
	for w := range strings.SplitSeq(word, "/") {
		switch name, isName := strings.CutPrefix(w, "@"); {
		case isName:
			if l.named[name] == nil {
				panic("standing: no name " + name)
			}
			e.alternatives = append(e.alternatives, l.named[name]...)
		case len(w) > 2 && w[0] == '*' && strings.HasSuffix(w, "*"):
			e.parts = append(e.parts, w[1:len(w)-1])
			l.isJoined = true
		case len(w) > 1 && w[0] == '*':
			e.ends = append(e.ends, w[1:])
		case len(w) > 1 && strings.HasSuffix(w, "*"):
			e.beginnings = append(e.beginnings, w[:len(w)-1])
		default:
			e.words[w], l.common[w] = true, true
		}
	}
}

// signalsOf returns words of which every sentence that the rule matches has one, those of the part of it that
// fewest sentences have; nil = there are none.
func (l *language) signalsOf(r rule) map[string]bool {
	var best map[string]bool
	common := l.named["noverb"]
	cost := func(words map[string]bool) int {
		n := len(words)
		for w := range words {
			if len(common) > 0 && common[0][0].words[w] {
				n += 100
			}
		}
		return n
	}
	for _, e := range r {
		if signals := l.signalsOfElement(e); signals != nil && (best == nil || cost(signals) < cost(best)) {
			best = signals
		}
	}
	return best
}

func (l *language) signalsOfElement(e element) map[string]bool {
	if e.isOptional || e.isGap || e.isAny || e.isAtTheEnd || len(e.beginnings)+len(e.parts)+len(e.ends) > 0 {
		return nil
	}
	words := maps.Clone(e.words)
	for _, a := range e.alternatives {
		signals := l.signalsOf(a)
		if signals == nil {
			return nil
		}
		maps.Copy(words, signals)
	}
	return words
}

// matches reports whether a rule of the kind holds for the words. A rule that begins with a gap may
// hold anywhere, the others where a part of the sentence begins.
func (l *language) matches(kind string, words []string, starts []int) bool {
	found := false
	l.tryRules(kind, words, func(r rule) bool {
		if r[0].isGap {
			for i := range words {
				found = found || r[1:].match(words, i, func(int) bool { return true })
			}
			return found
		}
		for _, i := range starts {
			found = found || r.match(words, i, func(int) bool { return true })
		}
		return found
	})
	return found
}

// longest returns where the longest match of a rule of the kind from i on ends; i = none matches.
func (l *language) longest(kind string, words []string, i int) int {
	end := i
	l.tryRules(kind, words, func(r rule) bool {
		r.match(words, i, func(j int) bool { end = max(end, j); return false })
		return false
	})
	return end
}

// tryRules calls try with the rules of which the words have a signal, until it returns true.
func (l *language) tryRules(kind string, words []string, try func(rule) bool) {
	at := l.signals[kind]
	if slices.ContainsFunc(at[""], try) {
		return
	}
	for i, w := range words {
		if !slices.Contains(words[:i], w) && slices.ContainsFunc(at[w], try) {
			return
		}
	}
}

// startsOf returns where the parts of the sentence begin, and where they go on after words of lead.
func (l *language) startsOf(words []string) []int {
	var starts []int
	next := 0 // the words before it belong to a lead
	for i := range words {
		if i > 0 && words[i-1] != "," && i >= next {
			continue
		}
		starts = append(starts, i)
		next = max(next, l.longest(kindLead, words, i)+1)
	}
	return starts
}

// match calls then with the end of each match of the rule from i on, until it returns true.
func (r rule) match(words []string, i int, then func(end int) bool) bool {
	if len(r) == 0 {
		return then(i)
	}
	e, rest := &r[0], r[1:]
	switch {
	case e.isAtTheEnd:
		return (i == len(words) || words[i] == ",") && rest.match(words, i, then)
	case e.isGap:
		for n := 0; n <= maxGap || e.crosses; n++ {
			if rest.match(words, i+n, then) {
				return true
			}
			if i+n >= len(words) || words[i+n] == "," && !e.crosses {
				return false
			}
		}
		return false
	}
	for _, a := range e.alternatives {
		if a.match(words, i, func(j int) bool { return rest.match(words, j, then) }) {
			return true
		}
	}
	if i < len(words) && e.matchesWord(words[i]) && rest.match(words, i+1, then) {
		return true
	}
	return e.isOptional && rest.match(words, i, then)
}

func (e *element) matchesWord(w string) bool {
	if e.isAny {
		return w != "," && (e.notOf == nil || !e.notOf.named["noverb"][0][0].matchesWord(w)) // else it cannot be what the user asks for
	}
	return e.words[w] || slices.ContainsFunc(e.beginnings, func(b string) bool { return strings.HasPrefix(w, b) }) ||
		slices.ContainsFunc(e.parts, func(p string) bool { return strings.Contains(w, p) }) ||
		slices.ContainsFunc(e.ends, func(s string) bool { return len(w) > len(s)+1 && strings.HasSuffix(w, s) })
}

// languagesOf returns the languages that the words may be of: those whose rules have most of them, and
// those without blanks between words.
func languagesOf(words []string) []*language {
	most, counts := 0, map[*language]int{}
	for _, l := range languages() {
		for _, w := range words {
			if l.common[w] {
				counts[l]++
			}
		}
		most = max(most, counts[l])
	}
	return slices.DeleteFunc(slices.Clone(languages()), func(l *language) bool { return counts[l] < max(most, 1) && !l.isJoined })
}
