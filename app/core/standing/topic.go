package standing

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// languageNames are names of languages, folded.
//
//nolint:misspell // other languages
const languageNames = `english|german|french|spanish|dutch|italian|portuguese|polish|russian|chinese|mandarin|japanese|korean|arabic|turkish|swedish|danish|norwegian|finnish|greek|hebrew|hindi|ukrainian|czech|hungarian|romanian|latin|catalan` +
	`|englische?n?|deutsche?n?|franzoesische?n?|spanische?n?|niederlaendische?n?|italienische?n?|portugiesische?n?|polnische?n?|russische?n?|chinesische?n?|japanische?n?|koreanische?n?|arabische?n?|tuerkische?n?|schwedische?n?|daenische?n?|norwegische?n?|finnische?n?|griechische?n?|ukrainische?n?|tschechische?n?|ungarische?n?` +
	`|anglais|allemand|francais|espagnol|neerlandais|italien|portugais|polonais|russe|chinois|japonais|coreen|arabe|turc|suedois|danois|norvegien|finnois|grec|ukrainien` +
	`|ingles|aleman|frances|espanol|castellano|neerlandes|holandes|italiano|portugues|polaco|ruso|chino|japones|coreano|turco|sueco|danes|noruego|griego|ucraniano|catalan`

// money is an amount in a currency, folded.
const money = `(?:[€$£] ?\d|\d[\d.,]* ?(?:€|\$|£|euros?|eur|dollars?|usd|pounds?|gbp|franken|chf|francs?|pesos|dolares|libras))`

//nolint:gochecknoglobals // immutable
var isLanguage = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^(?:" + languageNames + ")$") })

// topicRule recognizes a topic in folded text.
type topicRule struct {
	topic   string
	pattern *regexp.Regexp
}

//nolint:gochecknoglobals,misspell // immutable; other languages
var topicRules = sync.OnceValue(func() []topicRule {
	const answers = `(?:answers?|repl(?:y|ies)|responses?|antwort(?:en)?|reponses?|respuestas?)`
	const size = `(?:short|shorter|brief|briefer|concise|long|longer|detailed|terse|words?|sentences?|paragraphs?|kurz\w*|kuerzer\w*|knapp\w*|lang\w*|laenger\w*|ausfuehrlich\w*|woerter\w*|saetze\w*|courte?s?|breve?s?|concise?s?|longue?s?|detaillee?s?|mots|phrases|cort[oa]s?|larg[oa]s?|concis[oa]s?|detallad[oa]s?|palabras|frases)`
	const diet = `(?:(?:lacto-|ovo-)*vegan\w*|vegetari\w+|veganer\w*|vegane?s?|pescatarian|pescetari\w+|pescetarien\w*|pescetarian\w*|flexitari\w+|omnivor\w+)`
	return []topicRule{
		{TopicAll, regexp.MustCompile(`\b(?:all|everything|alle|alles|toutes?|tout|todas?|todo) (?:of )?(?:my|i|meine|was ich|mes|ce que|mis|lo que)\b`)},
		{TopicBudget, regexp.MustCompile(`\b(?:budgets?|presupuesto|spend|ausgeben|depenser|gastar)\b|\bspending (?:limit|cap)\b|` + money)},
		{TopicName, regexp.MustCompile(`\b(?:call me|address me as|refer to me as|my (?:first |full )?name is|nenne?n? (?:sie )?mich|sage?n? (?:sie )?(?:\S+ ){1,3}zu mir|sprich mich mit|sprechen sie mich .*mit .*an|mein name ist|ich heisse|(?:appelle|appelez|nomme)-moi|m'app\w+|je m'appelle|mon (?:pre)?nom est|llamame|llameme|llamarme|me llamo|mi nombre es)\b`)},
		{TopicAddress, regexp.MustCompile(`\b(?:duze?n?|siezen?|sieze|duzt|siezt|tutoie|tutoyer|tutoyez|tutoiement|vouvoie|vouvoyer|vouvoyez|vouvoiement|geduzt|gesiezt|tuteame|tuteeme|tutearme|de (?:tu|usted|vos))\b`)},
		{TopicDiet, regexp.MustCompile(`\b(?:i'm|i am|im|i eat|i've|we're|we are|we eat|ich|wir|ich bin|wir sind|je|j'ai|nous|on|soy|somos|como|comemos|me he|ahora)\b(?: \S+){0,4} ` + diet + `\b`)},
		{TopicUnits, regexp.MustCompile(`\b(?:metric|imperial|metrisch\w*|imperiale?n?|metrique|metrico|metricas|imperiales)\b`)},
		{TopicLength, regexp.MustCompile(answers + `.*\b` + size + `\b|\b` + size + `\b.*` + answers + `|\b(?:be|dich|sich|sois|soyez|se) (?:\w+ ){0,4}` + size + `\b`)},
		{TopicLanguage, regexp.MustCompile(`\b(?:in|into|to|auf|en|a|au|al|ins|zu) (?:\w+ )?(?:l')?(?:` + languageNames + `)\b|^(?:` + languageNames + `)\b`)},
	}
})

// isCall recognizes calls by telephone in folded text: "call me after eight".
//
//nolint:gochecknoglobals // immutable
var isCall = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bcall me (?:before|after|at|on|in|when|if|early|late|again|back|until|between|during|to)\b|(?:-moi|m'app\w+)(?: jamais)? (?:avant|apres|a|le|quand|si|des)\b|\b(?:llamame|llamarme|llames)(?: nunca)? (?:antes|despues|a|el|cuando|si)\b`)
})

// topicOf returns the topic of the folded text; empty = only its own words tell.
func topicOf(folded string) string {
	for _, rule := range topicRules() {
		if rule.topic == TopicName && isCall().MatchString(folded) {
			continue
		}
		if rule.pattern.MatchString(folded) {
			return rule.topic
		}
	}
	return ""
}

// stopWords tell nothing about the subject of an instruction.
//
//nolint:misspell // other languages
const stopWords = `a an the i i'm i'd i've my me we our us you your yours it its is are be been to of for in on at and or but so if that this these those with from as by not no never always ever don't do does dont can could may might must should shall will would please again anymore more
	any longer now on out going forward rest conversation chat session whole every each all only just want need have has like prefer make sure keep use using used give get let let's actually instead rather forget about what said stop fine ok free feel also then when whenever thanks thank
	remember mind bear note there than up until unless under circumstances one time times future future answers answer reply replies response responses respond said rule thing matter apply applies required necessary needed per pro
	ich du er sie es wir ihr mein meine meinen deine deinen dein dich mich mir dir uns der die das den dem des ein eine einen und oder aber mit von nun an ab jetzt sofort zukunft immer nie niemals stets bitte nur noch nicht mehr kein keine keinen auf in im ist sind bei zu zum zur fuer dass wieder doch lieber
	darf darfst musst brauchst kannst koennen sollst sollen gilt gelten rest gespraechs unterhaltung vergiss sache verwende verwenden benutze benutzen nutze nutzen antworte antworten antwort grundsaetzlich jedes mal uhr statt stattdessen ohne
	je tu il elle on nous vous le la les l un une des du de d et ou mais ne n pas plus jamais toujours mon ma mes ton ta tes votre vos ce c'est cette que qui en a au aux dans pour par sur est es as suis avec s'il plait te desormais dorenavant partir maintenant merci peux pouvez dois devez besoin peine nouveau
	utilise utiliser utilisez reponds repondre repondez reponses reponse finalement plutot oublie reste avoir etre fait
	el los las lo una y o pero no si nunca siempre jamas mi mis tu tus su sus me te se de del al con por para que en es son ya hace falta favor ahora adelante partir usa usar uses use utiliza responde responder respuestas respuesta puedes puede volver tienes mejor olvida vale resto conversacion mas sea sean
	qqqq`

// wordSet returns the words of the text.
func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		set[w] = true
	}
	return set
}

//nolint:gochecknoglobals // immutable
var stopSet = sync.OnceValue(func() map[string]bool { return wordSet(stopWords) })

// termsOf returns the words that tell what the text is about, without numbers.
func termsOf(text string) []string {
	var out []string
	seen := map[string]bool{}
	for _, w := range splitWords(text) {
		if len(w) > 1 && !unicode.IsDigit(rune(w[0])) && !stopSet()[w] && !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}

// sameWord reports whether two words differ only in their endings, as far as a few letters tell.
func sameWord(a, b string) bool {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	shorter := min(len(a), len(b))
	return n == shorter && n >= 3 || n >= 4 && n*3 >= shorter*2 || n == 3 && shorter == 4
}

// noEnd is the end of a text whose full stop ends no sentence: an abbreviation, or a number that
// counts what follows it, as German has them ("am 12. Oktober").
//
//nolint:gochecknoglobals // immutable
var noEnd = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|[ (])(?:e\.g|i\.e|etc|vs|approx|no|a\.m|p\.m|dr|mr|mrs|ms|prof|st|z\.b|d\.h|bzw|ca|usw|evtl|inkl|max|min|nr|hr|fr|mme|m|p\.ex|env|sr|sra|uds?|p\.ej|aprox|z|p` +
		`|(?:der|die|das|den|dem|des|eine?|eine[nmr]|ne|am|im|zum|zur|vom|beim|bis|ab|ins|jede[nrs]?) \d{1,2})\.[ \t]*$`)
})

// accents are the letters without accents of lower-case letters.
//
//nolint:gochecknoglobals // immutable
var accents = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "ß", "ss", "œ", "oe", "æ", "ae", "à", "a", "á", "a", "â", "a", "ã", "a", "ç", "c",
	"è", "e", "é", "e", "ê", "e", "ë", "e", "ì", "i", "í", "i", "î", "i", "ï", "i", "ñ", "n", "ò", "o", "ó", "o", "ô", "o", "õ", "o", "ù", "u", "ú", "u", "û", "u", "’", "'")

// fold returns the text in lower case without accents: words separated by one blank, commas
// between its parts as words of their own, no other punctuation.
func fold(text string) string {
	text = accents.Replace(strings.ToLower(text))
	var b strings.Builder
	before := ' '
	for i, r := range text {
		switch next, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):]); {
		case r >= 'a' && r <= 'z', isWordRune(r), strings.ContainsRune("'€$£%", r), r == '-' && isWordRune(before), strings.ContainsRune(".,:", r) && unicode.IsDigit(before) && unicode.IsDigit(next):
			b.WriteRune(r)
		case strings.ContainsRune(",;:(—–", r):
			b.WriteString(" , ")
		case !unicode.IsMark(r):
			b.WriteByte(' ')
		}
		before = r
	}
	words := slices.CompactFunc(strings.Fields(b.String()), func(a, b string) bool { return a == "," && b == "," })
	return strings.Trim(strings.Join(words, " "), " ,")
}

// splitWords returns the words of the text, folded.
func splitWords(text string) []string {
	return strings.FieldsFunc(fold(text), func(r rune) bool { return !isWordRune(r) })
}

// hasWordOf reports whether the text has a word of the set, whose words are folded.
func hasWordOf(text string, set map[string]bool) bool {
	return slices.ContainsFunc(splitWords(text), func(w string) bool { return set[w] })
}
