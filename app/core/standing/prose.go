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

// candidates returns the sentences that have a word of a rule, in their order.
func candidates(text string) []sentence {
	text = core.Clip(text, MaxText)
	masked := maskQuotes(text)
	var out []sentence
	p := prose{}
	for start := 0; start < len(text); {
		end := len(text)
		if i := strings.IndexByte(text[start:], '\n'); i >= 0 {
			end = start + i
		}
		line, maskedLine := text[start:end], masked[start:end]
		start = end + 1
		if !p.isOwn(line) {
			continue
		}
		for _, s := range splitSentences(line, maskedLine) {
			if utf8.RuneCountInString(s.text) <= MaxInstruction && hasTrigger(s.masked) {
				out = append(out, s)
			}
		}
	}
	if len(out) > maxExamined {
		out = append(out[:maxExamined/2:maxExamined/2], out[len(out)-maxExamined/2:]...)
	}
	return out
}

// prose tells the lines that a user wrote from those that a user pasted.
type prose struct {
	fence  string // that ends the block of code; empty = none is open
	pasted bool   // all that follows is a document
	last   string // the end of the last line that is not blank
}

var (
	//nolint:gochecknoglobals // immutable
	announcement = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:text|article|e-?mails?|mail|letter|document|doc|transcript|story|page|paragraph|passage|section|contract|policy|report|readme|file|message|post|ticket|comment|review|poem|chapter|prompt|quote|wrote|said|says|writes|sentences?|following|below` +
			`|artikel|brief|dokument|abschnitt|vertrag|bericht|datei|nachricht|beitrag|kommentar|gedicht|kapitel|schrieb|schreibt|sagte|sagt|folgenden?|satz|sätze|unten` +
			`|texte|lettre|courriel|rapport|contrat|fichier|paragraphe|extrait|poème|chapitre|écrit|disait|suivante?|phrases?|ci-dessous` +
			`|texto|artículo|carta|correo|documento|informe|contrato|archivo|párrafo|fragmento|poema|capítulo|escribió|dijo|mensaje|siguiente|frases?|abajo)\b[^.!?]*:\s*$`)
	})
	//nolint:gochecknoglobals // immutable
	logLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*(?:\[?\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d:\d\d|[A-Z][a-z]{2} +\d+ \d\d:\d\d|\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|PANIC|CRITICAL)\b|(?i:error|warning|fatal|panic|exception|traceback|caused by|system|assistant|tool|user)\b ?:|at [\w.$]+\(|(?:File|goroutine) |\$ |# |<\/?[a-zA-Z!?]|\+\+\+ |--- |@@ )|https?://\S+$|[{};]\s*$`)
	})
	//nolint:gochecknoglobals // immutable
	mailHeader = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^\s*(?:-{2,} ?(?:original message|forwarded message|ursprüngliche nachricht|message d'origine|mensaje original)|(?:from|subject|von|betreff|de|objet|asunto|date|sent|gesendet|to|an|à|para): .*(?:@|re:|aw:|fwd?:|wg:|\d{4})|(?:subject|betreff|objet|asunto):|(?:on|am|le|el) .{4,80}(?:wrote|schrieb.*|a écrit|escribió) ?:)`)
	})
)

// isOwn reports whether the line is the user's own: not pasted, quoted or in code.
func (p *prose) isOwn(line string) bool {
	trimmed := strings.TrimSpace(line)
	if p.fence != "" {
		if strings.HasPrefix(trimmed, p.fence) {
			p.fence = ""
		}
		return false
	}
	for _, fence := range []string{"```", "~~~"} {
		if strings.HasPrefix(trimmed, fence) {
			p.fence = fence
			return false
		}
	}
	if trimmed == "" || p.pasted {
		return false
	}
	if announcement().MatchString(p.last) || mailHeader().MatchString(core.Clip(trimmed, 200)) {
		p.pasted = true
		return false
	}
	p.last = prompttext.Tail(trimmed, 200)
	indented := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
	isItem := strings.HasPrefix(trimmed, "- ") || strings.HasPrefix(trimmed, "* ") || strings.HasPrefix(trimmed, "• ")
	return (!indented || isItem) && !strings.HasPrefix(trimmed, ">") && !strings.HasPrefix(trimmed, "|") && !logLine().MatchString(core.Clip(trimmed, 200))
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
		if !endsWithAbbreviation(s) {
			add(at)
		}
	}
	if start < len(line) {
		add(len(line))
	}
	return out
}
