package summarize

import (
	"regexp"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/cut"
)

var (
	// stated is an error as programs write it: at the beginning of a line, behind a
	// place, a time, a program's name.
	stated = regexp.MustCompile(`^\W*(?:[^\s:]*[:\]>|)]\s*|npm\s|\d[\d\-/.,:TZ+]*\s|E\s|\[?\d+\]?#\S+\s|-\s)*` +
		`(?:\[?(?i:error|err|fatal|panic|exception|failure)\]?(?:\[\w+\])?\s*(?:[:#=(\]!]|\w+\s*:|from\b|code\b|[A-Z]{2,}|\d)|\[?(?:ERROR|ERR!|FATAL|CRITICAL|SEVERE)\]?\s|[A-Za-z_.$]*[a-z](?:Error|Exception)\b\s*(?:[:(\[]|$)|(?i:core dumped|segmentation fault))`)
	// coded is a code of an error, wherever it stands.
	coded = regexp.MustCompile(`\b(?i:error|exception)(?: code)?:? (?i:code )?(?:[A-Z]{1,4})?\d{2,}|\b(?i:error|exception) code:? \w*\d|\bE\d{3,5}\b|\bERR_[A-Z_]+\b|\b0x[89AaCc][0-9A-Fa-f]{7}\b` +
		`|\bE(?:NOENT|ACCES|PERM|EXIST|CONNREFUSED|CONNRESET|CONNABORTED|TIMEDOUT|ADDRINUSE|PIPE|NOTFOUND|AI_AGAIN|ISDIR|NOTDIR|NOTEMPTY|MFILE|NOSPC|INVAL|BUSY|AGAIN|HOSTUNREACH|NOMEM|IO|LIFECYCLE|RESOLVE|INTEGRITY)\b`)
	// inside is an error in the middle of a line.
	inside = regexp.MustCompile(`\b(?:Error|ERROR|FATAL|Fatal|Exception|Panic)\s*[:\[(]|\b[A-Z]\w*(?:Error|Exception): |\blevel=(?i:error|fatal)\b`)
	// told is what means an error in a tool's output.
	told = regexp.MustCompile(`(?i)\b(?:error|exception|panic|fatal|core dumped|segmentation fault|OOMKilled|out of memory|crashloopbackoff|imagepullbackoff|permission denied|access (?:is )?denied` +
		`|no such file or directory|command not found|connection refused|timed out|does not exist)\b|^\s*(?:--- FAIL: |FAILED \S|[✕✗✘] )|\bis not recognized as\b`)
	// noProblem is a line that says that there is none, that introduces others, or a
	// frame of a trace.
	noProblem = regexp.MustCompile(`(?i)\b(?:no|0|zero|without(?: any)?) (?:error|exception)s?\b` +
		`|"?\b(?:error|err|exception)s?"?\s*[:=]+\s*(?:null|nil|<nil>|none|0|false|""|\[\]|\{\})(?:[^\w.]|$)|^\s*at \S.*[:(]|^\s*(?:During handling of the above|The above exception was|\+ CategoryInfo|npm (?:ERR!|error) (?:errno|A complete log|Exit status|path|\S+@\d))`)
	// source is a line of source code, maybe with its number.
	source = regexp.MustCompile(`^\s*(?:\d+\s*[:|\t→ ]\s*)?[+-]?\s*(?:except|raise|throw|catch|class|import|from|return|def|func|case|if|else|elif|type|var|let|const|with|try|for|while|assert|public|private|static|fn|use|package|\}|//|#|/\*|\*)(?:[\s(.:{]|$)` +
		`|\berr(?:or)?\s*(?::=|!=|==)|\s:=\s|=>\s|\b(?:errors?\.New|fmt\.Errorf|Errorf?|raises|throw new|console\.error|log(?:ger)?\.\w+|print\w*)\(|[;{]\s*$`)
)

// isProblem reports whether the line states an error. People speak of errors, too:
// outside of tool results it must look like a program's.
func isProblem(line string, tool bool) bool {
	line = core.Clip(line, 400)
	if !mayBeError(line) || noProblem.MatchString(line) || ruled(line) {
		return false
	}
	if stated.MatchString(line) {
		return !isSource(line) || !tool
	}
	if source.MatchString(line) {
		return false
	}
	return coded.MatchString(line) || inside.MatchString(line) || tool && told.MatchString(line)
}

// problem takes the line if it states an error. The last line of a Python traceback
// does, whatever the exception is called; of what people say the sentence is taken.
func (s *scan) problem(line string) {
	switch {
	case s.call || s.full(problems):
	case strings.HasPrefix(strings.TrimSpace(line), "Traceback (most recent call last)"):
		s.traced = true
	case s.traced && strings.TrimSpace(line) != "" && line[0] != ' ' && line[0] != '\t':
		s.traced = false
		s.take(problems, line)
	case s.traced:
	case s.tool:
		if isProblem(line, true) {
			s.take(problems, line)
		}
	case mayBeError(line) && len(line) < entryBytes && stated.MatchString(line): // pasted
		if isProblem(line, false) {
			s.take(problems, line)
		}
	case mayBeError(line):
		for _, sentence := range cut.Sentences(line) {
			if isProblem(sentence, false) {
				s.take(problems, sentence)
			}
		}
	}
}

// isSource reports whether a line that begins like an error is source code all the same.
func isSource(line string) bool {
	return source.MatchString(line) && !strings.HasSuffix(strings.TrimSpace(line), "{") // Node prints objects
}

// ruled reports whether the line is a headline between rules.
func ruled(line string) bool {
	return len(strings.Trim(line, "=-_#*~ \t")) < len(line)/2 && len(line) > 20
}

// mayBeError is a cheap test that most lines fail.
func mayBeError(line string) bool {
	for _, part := range []string{"rr", "RR", "xc", "XC", "ani", "ANI", "ata", "ATA", "FAIL", "ailure", "E", "ault", "ump", "OOM", "emory", "ackOff", "enied", "uch file", "not found", "efused", "imed out", "ecognized", "ot exist", "0x", "✕", "✗", "✘"} {
		if strings.Contains(line, part) {
			return true
		}
	}
	return false
}
