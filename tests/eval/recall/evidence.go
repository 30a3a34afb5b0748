package recall

import (
	"slices"
	"strings"

	"bobbin/app/core/searchtext"
)

// Evidence is a message that answers a question.
type Evidence struct {
	Text    string
	Telling []string // its words that few messages of the conversation have
	Answer  []string // those of them that the answer has, too
}

// What it takes to tell a message in other words.
const (
	tellingShare = 0.6 // of its telling words
	commonShare  = 20  // a word is not telling that more than one message of so many has …
	commonLeast  = 3   // … and more than so many
	passageWords = 60  // in which they must stand
)

// passage is a set of the words that stand close together.
type passage map[string]bool

// newPassage returns the words of a text as one passage.
func newPassage(s string) passage { return passageOf(searchtext.Text(s).Words) }

func passageOf(words []string) passage {
	p := passage{}
	for _, w := range words {
		p[w] = true
	}
	return p
}

// splitPassages returns each line of the text, and of a longer one any passageWords in a row.
func splitPassages(s string) []passage {
	var out []passage
	for line := range strings.Lines(s) {
		words := searchtext.Text(line).Words
		for from := 0; from == 0 || from+passageWords <= len(words); from++ {
			out = append(out, passageOf(words[from:min(from+passageWords, len(words))]))
		}
	}
	return out
}

// coversEvidence reports whether the passage tells a message of the question's evidence: all of its
// telling words that the answer has, and most of the others.
func (p passage) coversEvidence(q Question) bool {
	return slices.ContainsFunc(q.Evidence, func(e Evidence) bool {
		n := 0
		for _, w := range e.Telling {
			if p[w] {
				n++
			}
		}
		missing := slices.ContainsFunc(e.Answer, func(w string) bool { return !p[w] })
		return n > 0 && !missing && float64(n) >= tellingShare*float64(len(e.Telling))
	})
}

// frequency counts in how many messages a word stands.
type frequency struct {
	messages int
	of       map[string]int
}

func newFrequency(texts []string) frequency {
	f := frequency{len(texts), map[string]int{}}
	for _, t := range texts {
		for w := range newPassage(t) {
			f.of[w]++
		}
	}
	return f
}

// newEvidence returns a message of the conversation as evidence for the answer.
func (f frequency) newEvidence(text, answer string) Evidence {
	e, said, wanted := Evidence{Text: text}, newPassage(text), newPassage(answer)
	for w := range said {
		if f.of[w] <= max(commonLeast, f.messages/commonShare) {
			e.Telling = append(e.Telling, w)
			if wanted[w] {
				e.Answer = append(e.Answer, w)
			}
		}
	}
	slices.Sort(e.Telling)
	slices.Sort(e.Answer)
	return e
}
