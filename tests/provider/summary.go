package provider

import (
	"fmt"
	"strings"
	"unicode"
)

// How many different words a summary has at most of its transcript, and of the summary
// before.
const (
	summaryWords = 120
	keptWords    = 40
)

// Summary is the summary that a request asks for: different each time, and one that can be
// stored, because it takes its words from all of the transcript and from the summary
// before.
func Summary(request string) string {
	text := between(request, "transcript")
	taken := map[string]bool{}
	var b strings.Builder
	fmt.Fprintf(&b, "## Goal\nTest the long conversation.\n\n## Facts\n- The notes were made from %d characters.\n- Turns were answered in order.\n", len(request))
	list(&b, between(request, "summary"), keptWords, taken)
	messages := strings.Split(text, "\n[")
	share := max(min(summaryWords, len(text)/40)/len(messages), 1)
	for i := 0; i < len(messages); i += max(len(messages)/summaryWords, 1) {
		list(&b, messages[i], share, taken)
	}
	return strings.TrimSpace(b.String())
}

// list writes a line of up to n words of the text that were not taken before, those
// first that say most: numbers and long words.
func list(b *strings.Builder, text string, n int, taken map[string]bool) {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	var line []string
	for _, least := range []int{5, 2} {
		for _, w := range words {
			if len(line) < n && !taken[w] && (len(w) >= least || unicode.IsDigit(rune(w[0])) && len(w) > 1) {
				taken[w] = true
				line = append(line, w)
			}
		}
	}
	if len(line) > 0 {
		b.WriteString("- " + strings.Join(line, " ") + "\n")
	}
}

// between returns what stands between the tags in the text.
func between(text, tag string) string {
	_, rest, _ := strings.Cut(text, "<"+tag+">\n")
	inner, _, _ := strings.Cut(rest, "\n</"+tag+">")
	return inner
}
