package standing

import (
	"maps"
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

// sharedNames stand for the same in all languages.
func sharedNames() map[string]string {
	return map[string]string{"lang": languageNames, "money": money}
}

// sharedAmends are those of all languages, in the words that their names stand for.
func sharedAmends() []string {
	return []string{`{have}(?: \S+){0,4} {money}(?: \S+){0,2} (?:{budget})`}
}

// language is a definition that is ready for use.
type language struct {
	name             string
	triggers         map[string]bool
	set              []rules // those with verbs one by one
	withdraw, amend  []rules
	never            *regexp.Regexp
	notVerb, request *regexp.Regexp
	notVerbs         map[string]bool
}

// rules are patterns of the same kind. Those that begin a clause are tried only there, as a
// search through a text takes much longer.
type rules struct {
	pattern  *regexp.Regexp
	isClause bool
}

//nolint:gochecknoglobals // immutable
var languages = sync.OnceValue(func() []*language {
	var out []*language
	for _, d := range []definition{english(), german(), french(), spanish()} {
		maps.Copy(d.names, sharedNames())
		out = append(out, &language{
			name: d.name, triggers: wordSet(d.triggers),
			set: d.rules(d.sets), withdraw: d.rules(d.withdraws), amend: d.rules(append(d.amends, sharedAmends()...)), never: d.compile(d.never),
			notVerb: d.compile([]string{"^(?:" + d.notVerb + ")$"}), request: d.compile([]string{"^(?:" + d.request + ") "}),
			notVerbs: wordSet(d.notVerbs + " ,"),
		})
	}
	return out
})

// rules returns the patterns, joined where that makes no difference.
func (d definition) rules(patterns []string) []rules {
	const lead, group = "{lead}", "(?P<"
	var clauses, others []string
	var out []rules
	for _, p := range patterns {
		rest, isClause := strings.CutPrefix(p, lead)
		switch {
		case strings.Contains(p, group) && isClause:
			out = append(out, rules{d.compile([]string{"^" + p}), true})
		case strings.Contains(p, group):
			out = append(out, rules{d.compile([]string{p}), false})
		case isClause:
			clauses = append(clauses, strings.ReplaceAll(rest, "|"+lead, "|"))
		default:
			others = append(others, p)
		}
	}
	if clauses != nil {
		out = append(out, rules{d.compile([]string{"^" + lead + "(?:" + strings.Join(clauses, "|") + ")"}), true})
	}
	if others != nil {
		out = append(out, rules{d.compile(others), false})
	}
	return out
}

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
func (l *language) sets(folded string) bool { return l.matches(l.set, folded) }

// matches reports whether a pattern matches a part of the folded sentence, and the words
// that must be verbs can be some.
func (l *language) matches(all []rules, folded string) bool {
	for _, r := range all {
		if !r.isClause {
			if l.accepts(r.pattern, folded) {
				return true
			}
			continue
		}
		rest := folded
		for range maxClauses {
			if l.accepts(r.pattern, rest) {
				return true
			}
			_, after, more := strings.Cut(rest, ", ")
			if !more {
				break
			}
			rest = after
		}
	}
	return false
}

// maxClauses is how many beginnings of an instruction a sentence may have.
const maxClauses = 12

func (l *language) accepts(pattern *regexp.Regexp, folded string) bool {
	if pattern.NumSubexp() == 0 {
		return pattern.MatchString(folded)
	}
	for _, match := range pattern.FindAllStringSubmatchIndex(folded, maxClauses) {
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
	if !hasWordOf(folded, l.triggers) {
		return Found{}, false
	}
	request := folded
	if question {
		at := l.request.FindStringIndex(folded)
		if at == nil {
			return Found{}, false
		}
		request = folded[at[1]:]
	}
	var f Found
	switch {
	case l.matches(l.withdraw, request):
		f.Withdraws = true
	case l.matches(l.set, request):
	case l.matches(l.amend, request):
		f.Amends = true
	default:
		return Found{}, false
	}
	if l.never.MatchString(folded) {
		return Found{}, false
	}
	f.Topic = topicOf(request)
	return f, true
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
