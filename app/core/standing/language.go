package standing

import (
	"regexp"
	"strings"
	"sync"
)

// definition holds the rules of a language, as patterns of folded text. {NAME} stands for the
// pattern of that name in names.
type definition struct {
	name     string
	triggers string            // every sentence that the patterns recognize has one of these words
	names    map[string]string // patterns that others contain
	// sets recognize an instruction. A group "verb" is the word that follows, which must not
	// be one of notVerbs, nor match notVerb.
	sets     []string
	notVerbs string
	notVerb  string
	// withdraws recognize that an earlier one is taken back, amends that it is changed by
	// words that say nothing alone.
	withdraws, amends []string
	// never recognizes sentences that begin like an instruction, but are none: idioms,
	// reported speech, one-off requests.
	never []string
	// request is the beginning of a question that asks for what the rest of it says.
	request string
}

// language is a definition that is ready for use.
type language struct {
	name, triggers                                string
	set, withdraw, amend, never, notVerb, request *regexp.Regexp
	notVerbs                                      map[string]bool
}

//nolint:gochecknoglobals // immutable
var languages = sync.OnceValue(func() []*language {
	var out []*language
	for _, d := range []definition{english(), german(), french(), spanish()} {
		l := &language{
			name: d.name, triggers: d.triggers,
			set: d.compile(d.sets), withdraw: d.compile(d.withdraws), amend: d.compile(d.amends), never: d.compile(d.never),
			notVerb: d.compile([]string{"^(?:" + d.notVerb + ")$"}), request: d.compile([]string{"^(?:" + d.request + ") "}),
			notVerbs: map[string]bool{",": true},
		}
		for w := range strings.FieldsSeq(d.notVerbs) {
			l.notVerbs[w] = true
		}
		out = append(out, l)
	}
	return out
})

// compile returns a pattern that matches what any of the patterns matches.
func (d definition) compile(patterns []string) *regexp.Regexp {
	text := "(?:" + strings.Join(patterns, "|") + ")"
	for range 4 { // names contain names
		for name, pattern := range d.names {
			text = strings.ReplaceAll(text, "{"+name+"}", "(?:"+pattern+")")
		}
	}
	return regexp.MustCompile(text)
}

// sets reports whether the folded sentence sets something for the whole conversation.
func (l *language) sets(folded string) bool {
	for _, match := range l.set.FindAllStringSubmatchIndex(folded, maxMatches) {
		accepted := true
		for i := 2; i < len(match); i += 2 {
			if match[i] >= 0 {
				word := folded[match[i]:match[i+1]]
				accepted = accepted && !l.notVerbs[word] && !l.notVerb.MatchString(word)
			}
		}
		if accepted {
			return true
		}
	}
	return false
}

// maxMatches is how many beginnings of an instruction a sentence may have.
const maxMatches = 10

// examine returns what the sentence says for the whole conversation, if it does.
func (s sentence) examine() (Found, bool) {
	folded := fold(s.masked)
	question := strings.HasSuffix(s.text, "?")
	for _, l := range languages() {
		if f, ok := l.examine(folded, question); ok {
			f.Text, f.Language = s.text, l.name
			return f, true
		}
	}
	return Found{}, false
}

func (l *language) examine(folded string, question bool) (Found, bool) {
	if l.never.MatchString(folded) {
		return Found{}, false
	}
	if question {
		at := l.request.FindStringIndex(folded)
		if at == nil {
			return Found{}, false
		}
		folded = folded[at[1]:]
	}
	topic := topicOf(folded)
	switch {
	case l.withdraw.MatchString(folded):
		return Found{Topic: topic, Withdraws: true}, true
	case l.sets(folded):
		return Found{Topic: topic}, true
	case l.amend.MatchString(folded):
		return Found{Topic: topic, Amends: true}, true
	}
	return Found{}, false
}

// parts returns the sentence, or its two halves if each is an instruction by itself.
func (s sentence) parts() []sentence {
	for _, conjunction := range []string{"; ", " and ", " und ", " et ", " y "} {
		i := strings.Index(s.masked, conjunction)
		if i < 0 {
			continue
		}
		j := i + len(conjunction)
		first := sentence{text: strings.TrimRight(s.text[:i], " ,"), masked: strings.TrimRight(s.masked[:i], " ,")}
		second := sentence{text: s.text[j:], masked: s.masked[j:]}
		a, ok := first.examine()
		if !ok || a.Withdraws || a.Amends {
			continue
		}
		if b, ok := second.examine(); ok && !b.Withdraws && !b.Amends && a.Topic != b.Topic {
			return []sentence{first, second}
		}
	}
	return []sentence{s}
}
