package standing

import (
	"regexp"
	"slices"
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
	var out []sentence
	for _, line := range bothEnds(proseLines(sentence{text: text, masked: maskQuotes(text)}), maxLines) {
		if isCode(line.text) {
			continue
		}
		for _, s := range splitSentences(line.text, line.masked) {
			if utf8.RuneCountInString(s.text) <= MaxInstruction {
				out = append(out, s)
			}
		}
	}
	return bothEnds(out, maxExamined)
}

// bothEnds returns at most limit of the sentences, half of them the last ones.
func bothEnds(all []sentence, limit int) []sentence {
	if len(all) <= limit {
		return all
	}
	return append(all[:limit/2:limit/2], all[len(all)-limit/2:]...)
}

// proseLines returns the lines of the user's own words.
func proseLines(s sentence) []sentence {
	var out []sentence
	p := prose{}
	for start := 0; start < len(s.text); {
		end := len(s.text)
		if i := strings.IndexByte(s.text[start:], '\n'); i >= 0 {
			end = start + i
		}
		if line := (sentence{text: s.text[start:end], masked: s.masked[start:end]}); p.isProse(line.text) {
			out = append(out, line)
		}
		start = end + 1
	}
	return out
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

// announces reports whether the line says that a pasted document follows. A word for all
// later answers says that they follow themselves: "From now on, in every message:".
func announces(line string) bool {
	line = strings.TrimRight(line, " *_")
	if !strings.HasSuffix(line, ":") {
		return false
	}
	line = prompttext.Tail(line, maxHead)
	return hasWordOf(line[strings.LastIndexAny(line[:len(line)-1], ".!?")+1:], announcements())
}

// maxHead is how much of a line tells what it is, in bytes.
const maxHead = 200

// isMailHeader reports whether the line begins a forwarded or quoted mail.
func isMailHeader(line string) bool {
	line = strings.ToLower(core.Clip(line, maxHead))
	if strings.HasPrefix(line, "--") {
		line = strings.Trim(line, "- ")
		return slices.Contains([]string{"original message", "forwarded message", "ursprüngliche nachricht", "weitergeleitete nachricht", "message d'origine", "message transféré", "mensaje original", "mensaje reenviado"}, line)
	}
	name, value, ok := strings.Cut(line, ":")
	if !ok {
		return false
	}
	switch strings.TrimSpace(name) {
	case "subject", "betreff", "objet", "asunto":
		return true
	case "from", "von", "de", "to", "an", "à", "para", "cc":
		return strings.Contains(value, "@")
	}
	return false
}

// logLine is the beginning of a line of a log, a stack trace, a diff, markup or a shell.
//
//nolint:gochecknoglobals // immutable
var logLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:\[?\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d:\d\d|[A-Z][a-z]{2} +\d+ \d\d:\d\d|\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|PANIC|CRITICAL)\b|(?i:error|warning|fatal|panic|exception|traceback|caused by|system|assistant|tool|user)\b ?:|at [\w.$]+\(|(?:File|goroutine) |\$ |# |</?[a-zA-Z!?]|\+\+\+ |@@ |[|>]|//|/\*)`)
})

// isCode reports whether a line outside of a block looks like a log or code.
func isCode(line string) bool {
	trimmed := strings.TrimSpace(line)
	indented := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
	isItem := strings.HasPrefix(trimmed, "- ") || strings.HasPrefix(trimmed, "* ") || strings.HasPrefix(trimmed, "• ")
	return indented && !isItem || strings.HasSuffix(trimmed, "{") || strings.HasSuffix(trimmed, "}") || strings.HasSuffix(trimmed, ";") || logLine().MatchString(core.Clip(trimmed, maxHead))
}

// isProse reports whether the line is the user's own, as far as the lines before it tell:
// not in code, nor of a pasted document.
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
	p.pasted = p.announced || isMailHeader(trimmed)
	p.announced = announces(trimmed)
	return !p.pasted
}

// quoteEnds returns the marks that end a quote which the mark begins; empty = it begins none.
func quoteEnds(mark rune) string {
	switch mark {
	case '"':
		return `"`
	case '“':
		return `”"`
	case '„':
		return `“”"`
	case '«':
		return `»`
	case '»':
		return `«`
	case '`':
		return "`"
	case '‘', '‚':
		return `’‘`
	case '\'':
		return `'`
	}
	return ""
}

// maskQuotes returns the text with q in the place of each byte of what stands in quotation
// marks or backquotes. A quote ends on its line.
func maskQuotes(text string) string {
	out := []byte(text)
	ends, from, before := "", 0, ' '
	for i, r := range text {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			size = 1
		}
		next, _ := utf8.DecodeRuneInString(text[i+size:])
		switch {
		case r == '\n':
			ends = ""
		case ends == "":
			if e := quoteEnds(r); e != "" && (r != '\'' && r != '‘' || !isWordRune(before) && isWordRune(next)) {
				ends, from = e, i+size
			}
		case strings.ContainsRune(ends, r) && (r != '\'' && r != '’' || !isWordRune(next)):
			for j := from; j < i; j++ {
				out[j] = 'q'
			}
			ends = ""
		}
		before = r
	}
	return string(out)
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
		at += len(s)
		if !endsWithAbbreviation(s) && !endsWithOrdinal(s, masked[at:]) {
			add(at)
		}
	}
	if start < len(line) {
		add(len(line))
	}
	return out
}
