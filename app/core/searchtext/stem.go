package searchtext

import (
	"slices"
	"strings"
	"sync"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/german"
)

// language is a language whose words have stems. To add one, add it to languages.
type language struct {
	stop    map[string]bool // words that tell nothing: they also tell the language of a text
	stem    func(*snowballstem.Env) bool
	letters string // letters that the languages before it do not have
}

// languages are the languages with stems. A text without a stop word of any counts as the
// first one with its letters.
//
//nolint:gochecknoglobals // immutable
var languages = []language{
	{stop: wordSet(englishStop), stem: english.Stem},
	{stop: wordSet(germanStop), stem: german.Stem, letters: "äöü"},
}

// englishStop and germanStop are the frequent words of the languages, with the pieces into
// which words with an apostrophe fall.
const (
	englishStop = `a about after again all am an and any are as at be been before being but by can could d did didn do does doesn doing
		don down during each few for from further had has have having he her here hers him his how i if in into is isn it its just ll m me
		more most my no nor not now of off on once only or other our out over own re s same she should so some such t than that the their
		them then there these they this those through to too under until up ve very was wasn we were what when where which while who
		whom whose why will with would you your yours`
	germanStop = `aber alle allem allen aller alles als also am an ander andere auch auf aus bei bin bis bist da damit dann das dass dein
		deine dem den denn der des dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines
		er es etwas euch euer für gegen hab habe haben hat hatte hatten hier hinter ich ihm ihn ihnen ihr ihre im in ist ja jede jedem
		jeden jeder jedes jetzt kann kein keine können könnte mal man mein meine mich mir mit muss nach nein nicht nichts noch nun nur ob
		oder ohne schon sehr sein seine sich sie sind so über um und uns unser unter vom von vor wann war waren warum was weg weil wenn
		wer werde werden wie wieder will wir wird wo wurde wurden zu zum zur zwar zwischen`
)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

// languageOf returns the language with the most stop words among the words of a text; if
// there are none, the one with a letter of its own in them, or the first. Words of other
// languages get the same stem in texts and in queries, so that they are found too.
func languageOf(words []string) *language {
	best, most := &languages[0], 0
	for i := range languages {
		l, n := &languages[i], 0
		for _, w := range words {
			if l.stop[w] {
				n++
			}
		}
		if n > most {
			best, most = l, n
		}
	}
	for i := range languages {
		l := &languages[i]
		if most == 0 && l.letters != "" && slices.ContainsFunc(words, func(w string) bool { return strings.ContainsAny(w, l.letters) }) {
			return l
		}
	}
	return best
}

// envs keeps the stemmers' buffers.
//
//nolint:gochecknoglobals // a pool
var envs = sync.Pool{New: func() any { return snowballstem.NewEnv("") }}

// maxStemmed is the longest word with a stem, in bytes.
const maxStemmed = 40

// stemOf returns the stem of a folded word; the word itself if it is not one of letters of
// the language.
func (l *language) stemOf(word string) string {
	if len(word) < 3 || len(word) > maxStemmed || strings.ContainsFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && !strings.ContainsRune("äöü", r)
	}) {
		return word
	}
	env, _ := envs.Get().(*snowballstem.Env)
	defer envs.Put(env)
	env.SetCurrent(word)
	l.stem(env)
	if stem := env.Current(); stem != "" {
		return stem
	}
	return word
}
