package standing

import (
	"slices"
	"strings"
	"sync"
)

// grammar recognizes what users set in informal words, in all languages with the same patterns.
// It reads a sentence as the concepts that its words have in the lexicon: "write dates like this
// for the rest of our chat" is "verb data in this lasting". A pattern is a regular expression
// whose words are concepts, conceptSets or patternNames; "x" is a word that the lexicon does not
// have, "quote" quoted text, "." any word. A class ([…]) has concepts only. Blanks have no meaning.
type grammar struct {
	sets     []patternGroup
	never    patterns // what sets nothing, whatever else it has
	requests patterns // questions that ask for what the rest of them says
	specific patterns // what is about something in particular, not about all answers
	things   string   // tags of what a text can be about
	slotPatterns
}

//nolint:gochecknoglobals // immutable
var theGrammar = sync.OnceValue(func() grammar {
	return grammar{
		sets:  compileGroups(),
		never: compilePatterns(neverPatterns()),
		requests: compilePatterns([]string{
			`^[lead please comma and]* (?:may you|you may|may|want)`, // "Could you stick to British spelling throughout?"
			`please|every answers|[lead ok] $`,                       // "each reply ends with a summary ok?"
		}),
		specific:     compilePatterns([]string{`[data soft format figure thing]|every (?:[^answers the plural my]|det+ [^answers]|$)`}),
		things:       tagsOf("x data food cond thing day figure answers shape ceiling rel"),
		slotPatterns: compileSlotPatterns(),
	}
})

// patternGroup are patterns that match only tags with one of some concepts.
type patternGroup struct {
	needs string // the tags of the concepts
	patterns
}

func compileGroups() []patternGroup {
	var out []patternGroup
	for _, group := range []struct {
		needs string
		list  []string
	}{
		{"lasts every without lets role", lastingPatterns()},
		{"every text style if", kindPatterns()},
		{"num currency", limitPatterns()},
		{"deny nomore forbid ban leave nobody without only so dislike", prohibitionPatterns()},
		{"style form like want", valuePatterns()},
		{"cond food eat pronoun profile avail due remember day", factPatterns()},
		{"name called spell quote figure", namePatterns()},
	} {
		out = append(out, patternGroup{needs: tagsOf(group.needs), patterns: compilePatterns(group.list)})
	}
	return out
}

// isSet reports whether the tags are of what sets something.
func (g grammar) isSet(tags string) bool {
	return slices.ContainsFunc(g.sets, func(p patternGroup) bool { return strings.ContainsAny(tags, p.needs) && p.match(tags) })
}

// conceptSets are concepts that mean the same to a pattern.
func conceptSets() [][2]string {
	return [][2]string{
		{"verb", "verb label close"}, // what the assistant does
		{"thing", "thing emoji"},
		{"unit", "unit shape"}, // what length is counted in
		{"num", "num number"},
		{"deny", "not no never cant"},
		{"det", "the plural my"},
		{"text", "data answers"}, // what has a style
		{"style", "lang tone size measure currency nation format shape soft thing"},
		{"lasts", "lasting onward never"},
		{"limit", "limit ceiling"},
		{"budget", "budget ceiling"},
		{"value", "measure currency format shape tone soft nation"},
	}
}

// patternNames stand for patterns, also in those after them.
func patternNames() [][2]string {
	return [][2]string{
		{"word", `[^comma and i he rel said]`},     // of the same clause
		{"plain", `[^i he rel past said if this]`}, // of no story, condition or matter at hand
		{"long", `(?:lasts|in det* every det* (?:text|x [i you])|every det* answers)`},
		// the beginning of a clause, behind words that say nothing
		{"start", `(?:^|comma|so|^[^i he rel past be have said this figure]* and) (?:lead|ok|please|and|so|comma|now|change|swap|you may|may you|may i|may)*`},
		{"order", `start [lasts only not]* [verb forbid remember]`},
	}
}

// lastingPatterns have a word for how long something holds, or for all answers.
func lastingPatterns() []string {
	return []string{
		`start make [^i he]* long`,
		`order i* [^i he]* (?:long|without)`, // "write dates like 2026-03-14 for the rest of this project"
		`start [det in please comma]* long [det in please comma filler now a is]* [style verb make forbid must only no not want name like called]`, // "never more than five"
		`^plain* (?:[please name called value size thing]|in det* lang) plain* long`,                                                               // "no emojis ever", "comments in English throughout"
		`^plain* long plain* (?:[value size thing]|in det* lang)`,                                                                                  // "in this chat only bullet points"
		`^lead* you* [may verb] plain* long`,                                                                                                       // "you can be blunt at all times"
		`start never [you not]* [must may]`,                                                                                                        // "under no circumstances are you to suggest pork"
		`verb .{0,3} form .{0,3} long`,                                                                                                             // "stick to vous until the end"
		`^[^i you he rel past said if this comma]* must word* long`,
		`must .{0,6} cond comma* lasting`,                                              // "it has to be halal, every time"
		`want word* long`,                                                              // "I want a source in every answer"
		`long .* called|[you role figure x] .{0,4} called .* long`,                     // "the villain is called Maro in all chapters"
		`lasting [^i he past]* comma please* [verb make]`,                              // "whenever you cite a law, give its number"
		`start lets plain* [lasts lang]|start lets verb in* [nation measure currency]`, // "let's speak Welsh"
		`^lead* role (?:now [my a]|.{0,4} onward|.{1,5} lasting $)|onward role`,        // "you are my English teacher from now on"
		`^lead* never word{0,4} please $`,                                              // "never ever politics please"
		`i filler* verb in* lang onward`,                                               // "wir schreiben auf Deutsch ab jetzt"
	}
}

// kindPatterns say how all of a kind has to be.
func kindPatterns() []string {
	return []string{
		`start verb plural unit in [soft lang] $`, // "écris les exemples en Python"
		`start [in det please]* every word{0,3} [text unit] word{0,6} (?:[must please limit only without close]|in* det* style)`, // "all temperatures in Celsius"
		`start [in det please]* every word{0,3} x word{0,6} (?:[please limit only without close]|in det* style|must word{0,2} [cond style])`,
		`start every must`, // "so everything has to be step-free"
		`start every [you det text]* [verb make] .{0,4} [must is]`,                // "anything you plan has to work with a toddler"
		`^lead* if you verb [^the this my plural]{0,5} comma please* [verb make]`, // "when you mention a film, add the year"
		`start in every word{0,3} want`,
		`start in* every .* comma please`,                                      // "for every figure, kindly give the source"
		`start in* every .{0,2} verb .{0,2} (?:you verb|verb) .* [style must]`, // "every command that you show is for zsh"
		`please word{0,3} every`,                                               // "please a source for each claim"
		`want word* every word{0,2} you`,
		`want plural text in`,                                  // "I want dates in the format day/month"
		`answers [comma in]* size`,                             // "answers short please"
		`order .{0,3} text quote`,                              // "sign all mails “Yours, Léa”"
		`start det* text .{0,3} (?:must|please|in style|only)`, // "dates must", "code only in Rust"
		`^ det* data comma is [in det]* style`,                 // "the times: that is in 24 h"
		`text .{0,4} must word* style`,
		`so please* verb in* style`, // "my mum can't see well, so write in capitals"
		`^[lead please forme]* every in* style`,
		`order (?:word|and){0,8} every text`, // "use it for all examples"
		`order every* det* [text x] in style`,
		`order every det* [text x] in* style`,          // "put all the prices in Swiss francs"
		`order filler* every [that so like filler in]`, // "explain everything so that I get it"
		`please only [in det]* [lang tone size measure currency nation soft]|^[lead please]* word{0,3} answers only`, // "one sentence answers only"
		`^[lead please det]* text lasting [comma like filler in]* [num quote style]`,                                 // "dates always like this: 2026-03-01"
		`order det* style in* det* style`,                                              // "use tables rather than lists"
		`order word{0,4} only [in det]* [lang tone size measure currency nation soft]`, // "answer only in French"
		`close word* every|every det* answers close`,                                   // "end each message with a question"
	}
}

// limitPatterns say how much there may be, or what it may cost.
func limitPatterns() []string {
	return []string{
		`start [verb ceiling] det* answers in* num unit`,                            // "limite tes réponses à 80 mots"
		`answers .{0,3} limit num unit`,                                             // "keep your answers under 100 words"
		`^[^past he rel]* limit .{0,2} num unit .{0,4} every`,                       // "no more than 4 lines per answer"
		`^[lead please]* limit .{0,2} num unit|limit num [unit data] .{0,3} please`, // "max. 5 bullet points"
		`limit .{0,3} num unit .{0,2} long|unit please* limit .{0,2} num unit|answers .{0,2} num unit limit`,
		`num unit .{0,3} (?:limit .{0,3})? every`,
		`^[^past he rel a]* [limit budget] .{0,4} num* currency [^too]* $`, // "the ceiling is 800 euros a head"
		`[not no] limit .{0,2} num* currency`,                              // "nothing above 35 euros"
		`^[^past he rel]* have .{0,2} num currency .* [limit budget]`,      // "we have 6,000 euros and not more"
	}
}

// prohibitionPatterns forbid something.
func prohibitionPatterns() []string {
	return []string{
		`start verb not in* day $`,                                              // "plan nothing on Sundays"
		`start (?:not|nomore|never)+ [filler you]* [verb form name]`,            // "dont propose anything with meat"
		`start not eat .{0,2} [food cond]`,                                      // "no como cerdo"
		`dislike .{0,3} [style doing]`,                                          // "I hate bullet points"
		`start forbid .{0,3} [style doing food cond every my]`,                  // "stop apologizing"
		`^[lead please]* verb word{1,4} not word{0,2} $`,                        // "rühr die Datenbank bloß nicht an"
		`so [please only]+ [text x]`,                                            // "so only places that allow dogs"
		`start [no not]+ [det a in every x]* [thing format]`,                    // "no smileys"
		`order [filler please]* no [thing data]`,                                // "use no jargon"
		`start [no not] (?:word{0,3} [data verb] word{0,2})? before .{0,3} num`, // "no calls before 10"
		`before .{0,3} num .* deny`,
		`start no .{0,5} comma never|^ det* data comma never|no food comma* lasts`, // "no calls on Sunday, never"
		`^[lead so please]* only (?:cond|data in [x det]+ [comma please lead]* $)`, // "only hotels with a pool"
		`start verb det* [x rel food thing] out`,                                   // "keep politics out of it"
		`start leave .{0,6} out`,                                                   // "leave my ex out of the family history"
		`[thing format food cond] .{0,2} ban`,                                      // "emojis are off limits"
		`^plain* ban (?:that|in* my)|that .* ban|^lead* ban [in det]* verb`,
		`^[lead and in det x]* (?:nobody .{0,4} [food eat]|food .{0,5} nobody)`, // "and nobody eats fish"
		`(?:[deny only every]|order) .* without|start without`,                  // "ask me before you book anything"
		`[you role] cant verb`,                                                  // "you must not contact my employer"
	}
}

// valuePatterns are orders and wishes with a value that tells by itself that it is for good.
func valuePatterns() []string {
	return []string{
		`start [please in filler now]* form`,                                // "sag bitte du zu mir"
		`order [filler in please you]* like`,                                // "talk to me like a pirate"
		`start behave word{0,4} [tone size]`,                                // "be gentle with me"
		`order [filler in please you]* [measure nation currency lang form]`, // "use feet and inches"
		`^lead* word{0,3} style word{0,2} please`,                           // "old spelling please"
		`style word{0,4} only`,
		`^plain* verb you .{0,5} (?:long|in style)`, // "Preise gibst du mir immer in Franken an"
		`want [in too that comma det please filler if is now]* [no every answers not only name style]`,
		`want [in that comma if filler]* [you sie verb] .{0,6} [verb name form style every not never]`, // "I'd rather you answered me in Welsh"
	}
}

// factPatterns are facts on which all later answers depend.
func factPatterns() []string {
	return []string{
		`[be have] [^not no never]{0,4} cond|i verb a* cond (?:[comma so]|$)`,                  // "I'm coeliac"
		`i .{0,3} (?:not .{0,3} [eat food cond]|eat .{0,3} [not no never cond only]|only eat)`, // "I don't eat pork"
		`i* cant .{0,3} food`,   // "I can't have any dairy"
		`food .{0,2} eat i not`, // "Laktose vertrage ich nicht"
		`^[^he rel]* become .{0,3} cond`,
		`pronoun`,                 // "they/them for me"
		`profile .{0,3} [is num]`, // "my working hours are 7:30 to 13:00"
		`i avail|avail .* must|my word{0,5} is word{0,4} num .{0,3} day`, // "I work nights"
		`^[^he rel past every]* due .{0,6} num`,                          // "the thesis is due on 9 June"
		`start remember [that comma please you filler]* [i be have every no only not profile want my avail]|remember .{0,6} cond|comma remember [that this]* $`,
	}
}

// namePatterns say how someone or something is called or written.
func namePatterns() []string {
	return []string{
		`start name [please filler comma in swap]* [x quote lead tone data thing rel]`,        // "call me Kalle"
		`[figure role my] word{0,3} called|called .{0,4} remember|figure is (?:onward|quote)`, // "the heroine is called Jorinde"
		`spell`, // "my name is spelled with a K"
		`quote .{0,3} [means called]|[means label called] .{0,6} quote|[label figure] .{0,4} only in* quote`, // "refer to the firm as “the Client”"
	}
}

// neverPatterns are of reported speech, stories, questions and requests for once.
func neverPatterns() []string {
	return []string{
		`[he rel] .{0,3} said [^so]* $|lasting comma said`, // "my boss says never …"
		`[he rel] is cond|[he rel] word{0,2} past [^comma so]* $`,
		`i .{0,4} never .* past`,
		`^[lead and]* [det a] x (?:verb [^that called]*|is in [^must]*) $`,                                       // "my parents always speak Welsh"
		`^[^lasts must]* once [^lasts must]* $`,                                                                  // "answer this one in French"
		`^[^lasts no must if i]* verb (?:filler* a [^answers lasts no]*|word{0,3} a [format shape] [^lasts]*) $`, // "write a poem in French"
		`^[^lasts must]* in this [x make data] [^lasts must]* $`,                                                 // "no emojis in this letter"
		`make [in filler please]* [quote this num]`,                                                              // "translate this"
		`[verb make] word{0,3} a word{0,2} told`,                                                                 // "tell me a story"
		`suppose|^ lead* what [^i]* $`,
	}
}

// examineByGrammar returns what the grammar recognizes of the sentence.
func (s sentence) examineByGrammar() (Found, bool) {
	if !hasWordOf(s.masked, theLexicon().signals) {
		return Found{}, false
	}
	folded := fold(s.masked)
	for _, r := range theLexicon().read(folded) {
		f, ok := r.examine(strings.HasSuffix(s.text, "?"))
		if !ok {
			continue
		}
		if f.Text, f.Language = s.text, r.language; !f.Withdraws {
			f.Topic = r.topicOf(folded)
		}
		return f, !theGrammar().never.match(r.tags) && !languageOf(r.language).never.MatchString(folded)
	}
	return Found{}, false
}

func (r reading) examine(question bool) (Found, bool) {
	g := theGrammar()
	switch {
	case question && !g.requests.match(r.tags):
		return Found{}, false
	case g.isSet(r.tags):
		return Found{}, true
	}
	return r.examineSlots()
}

// topicOf returns the topic of the sentence, if it is about all answers: "comment the code in
// German" has none, as it must not replace "answer in English".
func (r reading) topicOf(folded string) string {
	if theGrammar().specific.match(r.tags) {
		return ""
	}
	topic := topicOf(folded)
	if topic == TopicBudget && strings.ContainsRune(r.tags, tagOther) {
		return "" // for "the wedding"
	}
	if topic == "" && strings.ContainsRune(r.tags, tagOf("form")) {
		return TopicAddress
	}
	return topic
}

// setsAlone reports whether what changes an earlier instruction can stand without one: "use
// grams instead of cups from now on".
func setsAlone(text string) bool {
	f, ok := sentence{text: text, masked: maskQuotes(text)}.examineByGrammar()
	return ok && !f.Amends && !f.Withdraws
}

// isBySlot reports whether only the grammar recognizes that the text changes or withdraws
// something: what fills the same slot.
func isBySlot(text string) bool {
	_, ok := sentence{text: text, masked: maskQuotes(text)}.examine()
	return !ok
}

func languageOf(name string) *language {
	for _, l := range languages() {
		if l.name == name {
			return l
		}
	}
	return nil
}
