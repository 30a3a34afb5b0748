package summarize

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
)

const (
	minFacts    = 6   // an answer with so many facts is refused if most are unsupported
	nounCapital = 5   // if more than one in so many words has a capital, the language capitalizes nouns
	maxFacts    = 256 // that are checked
	maxExamples = 5
	exampleSize = 80 // bytes
)

// factWord is an address, a path, a file or an identifier.
var factWord = regexp.MustCompile(`(?:https?://|[~.]{0,2}/)?[\pL\pN_-]+(?:[./@_:\\]+[\pL\pN_-]+)+`)

// headings matches the headings of a summary: their capitals are no names.
var headings = regexp.MustCompile(`(?m)^[ \t>-]*(?:#+ .*|\*\*[^*\n]{1,60}\*\*)`)

// unsupportedIn returns the facts of the text that are neither in a message of the
// request nor in the previous summary; nil = none.
func unsupportedIn(text string, req Request) *core.Unsupported {
	sources := []string{req.Previous}
	for _, m := range req.Messages {
		sources = append(sources, messageRef(m), spokenText(m), m.ToolName)
		for _, c := range m.ToolCalls {
			sources = append(sources, c.Name, c.Arguments)
		}
	}
	_, list := unsupportedFacts(text, sources...)
	if len(list) == 0 {
		return nil
	}
	found := &core.Unsupported{Count: len(list)}
	for _, fact := range list[:min(len(list), maxExamples)] {
		found.Examples = append(found.Examples, prompttext.Line(fact, exampleSize))
	}
	return found
}

// unsupportedFacts returns the names, numbers and paths of the text, each once, and those
// that no source contains. The first word of a sentence is not a name, and in languages
// that capitalize all nouns no word is.
func unsupportedFacts(text string, sources ...string) (facts, unsupported []string) {
	known := map[string]bool{}  // fact → a source has it
	keys := map[string]string{} // key to look for in the sources → the fact
	add := func(fact, key string) {
		if _, double := keys[key]; !double && len(facts) < maxFacts {
			keys[key], known[fact] = fact, false
			facts = append(facts, fact)
		}
	}
	for _, w := range factWord.FindAllString(text, -1) {
		if strings.ContainsAny(w, `\_@`) || strings.Contains(w, "/") && (strings.Count(w, "/") > 1 || strings.ContainsAny(w, ".:0123456789")) {
			add(w, w) // and/or is no path
		}
	}
	names, words := namesIn(headings.ReplaceAllString(text, "\n"))
	if nounCapital*len(names) > words {
		names = nil
	}
	for _, name := range names {
		add(name, stemOf(name))
	}
	eachWord(text, func(w textWord) {
		if w.number && len(w.text) >= minDigits {
			add(w.text, w.text)
		}
	})
	for _, source := range sources {
		eachWord(source, func(w textWord) {
			key := w.text
			if !w.number {
				key = stemOf(w.text)
			}
			if fact, ok := keys[key]; ok {
				known[fact] = true
			}
		})
	}
	for _, fact := range facts {
		if !known[fact] && !slices.ContainsFunc(sources, func(s string) bool { return strings.Contains(s, fact) }) {
			unsupported = append(unsupported, fact)
		}
	}
	return facts, unsupported
}

// namesIn returns the words that begin with a capital inside a sentence, and how many
// words it checked.
func namesIn(text string) (names []string, words int) {
	eachWord(text, func(w textWord) {
		first, _ := utf8.DecodeRuneInString(w.text)
		if w.number || w.dense || utf8.RuneCountInString(w.text) < 3 || !endsMidSentence(text[:w.at]) {
			return
		}
		if words++; unicode.IsUpper(first) {
			names = append(names, w.text)
		}
	})
	return names, words
}

// endsMidSentence reports whether the text ends inside a sentence.
func endsMidSentence(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(text, " "))
	return unicode.IsLetter(last) || unicode.IsDigit(last) || last == ','
}
