package demo

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sentenceEnd is where one sentence ends and another may begin.
var sentenceEnd = regexp.MustCompile(`[.!?…]["”’)]?\s+|[。！？]|\n+`)

// sentences splits a text into its sentences, without blanks around them.
func sentences(text string) []string {
	var out []string
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	start := 0
	for _, end := range sentenceEnd.FindAllStringIndex(text, -1) {
		add(text[start:end[1]])
		start = end[1]
	}
	add(text[start:])
	return out
}

// quote returns the text in quotation marks, on one line and not too long.
func quote(text string) string { return "“" + brief(text, 200) + "”" }

// brief returns the text on one line with at most n characters.
func brief(text string, n int) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:n])) + "…"
}

// isQuestion reports whether a sentence asks.
func isQuestion(sentence string) bool {
	s := strings.TrimRight(strings.TrimSpace(sentence), `"”’)`)
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？") || asks.MatchString(s)
}

var asks = regexp.MustCompile(`(?i)^(?:and |so |but |please )?(?:what|who|whom|whose|where|when|why|how|which|do you|did i|do i|am i|can you|could you|tell me)\b`)

// stopWords say nothing about what a text is about.
const stopWords = " a about after again all also am an and any are as at auch auf be because been before but by can conversation " +
	"could das dein der dich did die dir discuss discussed do does doing don du earlier ein eine else er es ever " +
	"for from für get give got habe had has hast hat have he her here him his how i ich if im in into is ist it its " +
	"just know let make many may me mein meine mention mentioned message mich might mir mit more most much " +
	"must my name need nicht no noch not now oder of off on once one only or other our out over please question " +
	"quite really remember said say says see she should sie sind so some still such talk talked tell than thanks " +
	"that the their them then there these they thing things think this those through time to today told too und up " +
	"us use very von wann want war warum was way we well wer were what when where which while who whom whose why " +
	"wie will wir with without wo would yes yet you your yours zu "

// keywords returns the words that a text is about, in lower case and without
// endings, each once.
func keywords(text string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}) {
		if len(w) < 3 && w[0] < utf8.RuneSelf && !unicode.IsDigit(rune(w[0])) {
			continue
		}
		if strings.Contains(stopWords, " "+w+" ") {
			continue
		}
		if w = stem(w); !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// stem takes the commonest English endings off a word, so that "dogs" finds "dog".
func stem(word string) string {
	for _, ending := range []string{"ing", "ies", "ed", "es", "s"} {
		if rest, ok := strings.CutSuffix(word, ending); ok && len(rest) >= 3 && !strings.HasSuffix(rest, "s") {
			word = rest
			break
		}
	}
	if rest, ok := strings.CutSuffix(word, "e"); ok && len(rest) >= 3 { // live, living
		return rest
	}
	return word
}

// matches counts how many of the keywords are in the text. A keyword in a script
// without blanks between words may be anywhere in it.
func matches(text string, wanted []string) int {
	have := keywords(text)
	lower := strings.ToLower(text)
	n := 0
	for _, w := range wanted {
		if slices.Contains(have, w) || (w[0] >= utf8.RuneSelf && strings.Contains(lower, w)) {
			n++
		}
	}
	return n
}

// longest returns the longest keyword of a text as it is written there; "" if
// there is none.
func longest(text string) string {
	best := ""
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) {
		if utf8.RuneCountInString(w) > utf8.RuneCountInString(best) && len(keywords(w)) > 0 {
			best = w
		}
	}
	return best
}
