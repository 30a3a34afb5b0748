package standing

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
)

// sentence is a sentence of the user's own words.
type sentence struct {
	text   string // as written
	masked string // the same with quoted text replaced by letters q, byte for byte
}

// candidates returns the sentences of the user's own words, in their order.
func candidates(text string) []sentence {
	text = core.Clip(text, MaxText)
	var own []string
	var out []sentence
	p := prose{}
	for line := range strings.SplitSeq(text, "\n") {
		if p.isProse(line) {
			own = append(own, line)
		}
	}
	for _, line := range bothEnds(own, maxLines) {
		trimmed := strings.TrimSpace(line)
		indented := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
		isItem := strings.HasPrefix(trimmed, "- ") || strings.HasPrefix(trimmed, "* ") || strings.HasPrefix(trimmed, "• ")
		if indented && !isItem || strings.HasSuffix(trimmed, "{") || strings.HasSuffix(trimmed, "}") || strings.HasSuffix(trimmed, ";") || logLine().MatchString(core.Clip(trimmed, maxHead)) {
			continue // a log or code
		}
		for _, s := range splitSentences(line, maskQuotes(line)) { // a quote ends on its line
			if utf8.RuneCountInString(s.text) <= MaxInstruction {
				out = append(out, s)
			}
		}
	}
	return bothEnds(out, maxExamined)
}

// bothEnds returns at most limit of the lines or sentences, half of them the last ones.
func bothEnds[T any](all []T, limit int) []T {
	if len(all) <= limit {
		return all
	}
	return append(all[:limit/2:limit/2], all[len(all)-limit/2:]...)
}

// prose tells the lines that a user wrote from those that a user pasted.
type prose struct {
	fence     string // that ends the block of code; empty = none is open
	announced bool   // the next line begins a document
	pasted    bool   // all that follows is a document
}

// announcements are words of the last sentence of a line with a colon at its end, if the next
// line begins a document that the user pasted.
//
//nolint:gochecknoglobals,misspell // immutable; other languages
var announcements = sync.OnceValue(func() map[string]bool {
	return wordSet(`text article email mail letter document doc transcript story page paragraph passage section contract policy report readme file message post ticket comment review poem chapter prompt quote wrote said says writes sentence sentences below logs log output trace
		artikel brief dokument abschnitt vertrag bericht datei nachricht beitrag kommentar gedicht kapitel schrieb schreibt sagte sagt satz saetze unten ausgabe protokoll
		texte lettre courriel rapport contrat fichier paragraphe extrait poeme chapitre ecrit disait phrase phrases dessous sortie
		texto articulo carta correo documento informe contrato archivo parrafo fragmento poema capitulo escribio dijo mensaje frase frases abajo salida`)
})

// How much of a line tells what it is, and of its end whether a sentence ends, in bytes.
const (
	maxHead = 200
	maxWord = 16
)

// mailHeader begins a forwarded or quoted mail.
//
//nolint:gochecknoglobals // immutable
var mailHeader = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:--+ *(?:(?:original|forwarded) message|(?:ursprüngliche|weitergeleitete) nachricht|message (?:d'origine|transféré)|mensaje (?:original|reenviado))[ -]*$` +
		`|(?:subject|betreff|objet|asunto) *:|(?:from|von|de|to|an|à|para|cc) *:.*@)`)
})

// logLine is the beginning of a line of a log, a stack trace, a diff, markup or a shell.
//
//nolint:gochecknoglobals // immutable
var logLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:\[?\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d:\d\d|[A-Z][a-z]{2} +\d+ \d\d:\d\d|\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|PANIC|CRITICAL)\b|(?i:error|warning|fatal|panic|exception|traceback|caused by|system|assistant|tool|user)\b ?:|at [\w.$]+\(|(?:File|goroutine) |\$ |# |</?[a-zA-Z!?]|\+\+\+ |@@ |[|>]|//|/\*)`)
})

// isProse reports whether the line is the user's own, as far as the lines before it tell: not code, nor pasted.
func (p *prose) isProse(line string) bool {
	trimmed := strings.TrimSpace(line)
	if p.fence != "" {
		if strings.HasPrefix(trimmed, p.fence) {
			p.fence = ""
		}
		return false
	}
	if strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
		p.fence = trimmed[:3]
		return false
	}
	if trimmed == "" || p.pasted {
		return false
	}
	p.pasted = p.announced || mailHeader().MatchString(core.Clip(trimmed, maxHead))
	// A pasted document follows. A word for all later answers says that they follow themselves: "From now on, in every message:".
	end := prompttext.Tail(strings.TrimRight(trimmed, " *_"), maxHead)
	p.announced = strings.HasSuffix(end, ":") && hasWordOf(end[strings.LastIndexAny(end[:len(end)-1], ".!?")+1:], announcements())
	return !p.pasted
}

// quoteEnds are the quotation marks that end a quote, by the one that begins it.
//
//nolint:gochecknoglobals // immutable
var quoteEnds = map[rune]string{'"': `"`, '“': `”"`, '„': `“”"`, '«': "»", '»': "«", '`': "`", '‚': "’‘", '\'': "'", '‘': "’"}

// maskQuotes returns the line with q in the place of each byte of what stands in quotes.
func maskQuotes(line string) string {
	masked, endless := []byte(line), "" // endless: marks that have begun a quote without an end
	for at := 0; at < len(line); {
		mark, size := utf8.DecodeRuneInString(line[at:])
		isApostrophe := (mark == '\'' || mark == '‘') && (isWordByte(line, at-1) || !isWordByte(line, at+size))
		at += size
		if quoteEnds[mark] == "" || isApostrophe || strings.ContainsRune(endless, mark) {
			continue
		}
		end, size := quoteEnd(line[at:], mark)
		if size == 0 {
			endless += string(mark)
			continue
		}
		copy(masked[at:], strings.Repeat("q", end))
		at += end + size
	}
	return string(masked)
}

// quoteEnd returns where the quote that the mark has begun ends, and the bytes of the mark there; 0 = it does not end.
func quoteEnd(text string, mark rune) (end, size int) {
	for ; ; end += size {
		next := strings.IndexAny(text[end:], quoteEnds[mark])
		if next < 0 {
			return 0, 0
		}
		end += next
		_, size = utf8.DecodeRuneInString(text[end:])
		if (mark != '\'' && mark != '‘') || !isWordByte(text, end+size) {
			return end, size
		}
	}
}

// isWordByte reports whether the text has an ASCII letter, digit or underscore there.
func isWordByte(text string, at int) bool {
	return at >= 0 && at < len(text) && text[at] < utf8.RuneSelf && (isWordRune(rune(text[at])) || text[at] == '_')
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// splitSentences returns the sentences of the line.
func splitSentences(line, masked string) []sentence {
	var out []sentence
	start := 0
	add := func(end int) {
		text := strings.TrimLeft(line[start:end], " \t\r-*+•")
		if rest := strings.TrimLeft(text, "0123456789"); rest != text && (strings.HasPrefix(rest, ". ") || strings.HasPrefix(rest, ") ")) {
			text = rest[2:]
		}
		from := end - len(text)
		if text = strings.TrimSpace(text); text != "" {
			out = append(out, sentence{text: text, masked: masked[from : from+len(text)]})
		}
		start = end
	}
	at := 0
	for _, s := range prompttext.Sentences(masked) {
		if at += len(s); !strings.HasSuffix(strings.TrimRight(s, " \t"), ".") || !noEnd().MatchString(prompttext.Tail(s, maxWord)) {
			add(at)
		}
	}
	if start < len(line) {
		add(len(line))
	}
	return out
}
