package demo

import (
	"regexp"
	"strings"
)

// How people introduce themselves, and how a summary says it.
var (
	nameSaid = regexp.MustCompile(`(?i:\bmy name is|\bmy name's|\bi am called|\bi'm called|\bcall me|\buser's name is|\buser is called|\bich heiße|\bmein name ist)\s+(\p{L}[\p{L}\p{M}'’-]*(?: \p{Lu}[\p{L}\p{M}'’-]*){0,3})`)
	nameAsk  = regexp.MustCompile(`(?i)\b(?:what(?:'s| is| was) my name|who am i|(?:remember|know) my name|how am i called|wie heiße ich)\b`)
	// "my favorite color is blue"
	mineSaid = regexp.MustCompile(`(?i)\b(?:my|our) ([\p{L}][\p{L}\p{M}' -]{1,40}?)(?:'s name)? (?:is|are|was|were|will be) (.{1,200})`)
	mineAsk  = regexp.MustCompile(`(?i)\b(?:what(?:'s| is| are| was| were)|who(?:'s| is| are)|when(?:'s| is| are)|where(?:'s| is| are)|how old is|(?:do you )?(?:remember|know)) (?:my|our) ([\p{L}][\p{L}\p{M}' -]{1,40}?)(?: (?:is|are|called))?\s*(?:\?|$)`)
	// "I live in Paris", "we use Go"
	selfSaid = regexp.MustCompile(`(?i)^(?:[^,.]{0,40}, |and |but |so |well |also )?(?:i|we)(?: really| also| just| always| often)?(?:'m|'ve|'re| am| are| was| have| had| like| love| enjoy| prefer| hate| dislike| live| work| use| need| want| study| play| drive| own| come| moved| decided| plan| bought| speak| will)\b`)
	selfAsk  = regexp.MustCompile(`(?i)\b(?:do|did|am|was|have|are|were|can|will|should) (?:i|we)\b`)
	noted    = regexp.MustCompile(`(?i)\b(?:remember|note|keep in mind|don't forget)(?: that|:)?\s+\S`)
)

// knownName returns the user's name as it was said last; "" if it was not.
func knownName(t talk) string {
	name := ""
	for _, r := range append(t.statements(), remark{text: t.last}) {
		if isQuestion(r.text) {
			continue
		}
		if m := nameSaid.FindStringSubmatch(r.text); m != nil {
			name = m[1]
		}
	}
	return name
}

// mine returns what the user said of one of their things ("favorite color"); ""
// if nothing.
func mine(t talk, thing string) string {
	wanted := keywords(thing)
	value := ""
	for _, r := range t.statements() {
		m := mineSaid.FindStringSubmatch(r.text)
		if m == nil {
			continue
		}
		said := keywords(m[1])
		if len(wanted) > 0 && len(said) > 0 && matches(m[1], wanted) == len(wanted) {
			value = strings.TrimRight(strings.TrimSpace(m[2]), ".!")
		}
	}
	return value
}

// tellsFact reports whether a sentence tells something about its speaker, or
// asks to keep something.
func tellsFact(sentence string) bool {
	if isQuestion(sentence) {
		return false
	}
	return nameSaid.MatchString(sentence) || mineSaid.MatchString(sentence) ||
		selfSaid.MatchString(sentence) || noted.MatchString(sentence)
}
