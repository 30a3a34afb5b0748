package summarize

import (
	"regexp"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
)

var (
	// statedError is an error as programs print it: at the beginning of a line, or after a
	// place, a time, or a program's name.
	statedError = regexp.MustCompile(`^\W*(?:[^\s:]*[:\]>|)]\s*|npm\s|\d[\d\-/.,:TZ+]*\s|E\s|\[?\d+\]?#\S+\s|-\s)*` +
		`(?:\[?(?i:error|err|fatal|panic|exception|failure)\]?(?:\[\w+\])?\s*(?:[:#=(\]!]|\w+\s*:|from\b|code\b|[A-Z]{2,}|\d)|\[?(?:ERROR|ERR!|FATAL|CRITICAL|SEVERE)\]?\s|[A-Za-z_.$]*[a-z](?:Error|Exception)\b\s*(?:[:(\[]|$)|(?i:core dumped|segmentation fault))`)
	// errorCode is an error code anywhere in a line.
	errorCode = regexp.MustCompile(`\b(?i:error|exception)(?: code)?:? (?i:code )?(?:[A-Z]{1,4})?\d{2,}|\b(?i:error|exception) code:? \w*\d|\bE\d{3,5}\b|\bERR_[A-Z_]+\b|\b0x[89AaCc][0-9A-Fa-f]{7}\b` +
		`|\bE(?:NOENT|ACCES|PERM|EXIST|CONNREFUSED|CONNRESET|CONNABORTED|TIMEDOUT|ADDRINUSE|PIPE|NOTFOUND|AI_AGAIN|ISDIR|NOTDIR|NOTEMPTY|MFILE|NOSPC|INVAL|BUSY|AGAIN|HOSTUNREACH|NOMEM|IO|LIFECYCLE|RESOLVE|INTEGRITY)\b`)
	// inlineError is an error in the middle of a line.
	inlineError = regexp.MustCompile(`\b(?:Error|ERROR|FATAL|Fatal|Exception|Panic)\s*[:\[(]|\b[A-Z]\w*(?:Error|Exception): |\blevel=(?i:error|fatal)\b`)
	// toolError is what reports an error in a tool's output.
	toolError = regexp.MustCompile(`(?i)\b(?:error|exception|panic|fatal|core dumped|segmentation fault|OOMKilled|out of memory|crashloopbackoff|imagepullbackoff|permission denied|access (?:is )?denied` +
		`|no such file or directory|command not found|connection refused|timed out|does not exist)\b|^\s*(?:--- FAIL: |FAILED \S|[✕✗✘] )|\bis not recognized as\b`)
	// noProblem is a line that reports no error, that introduces other lines, or that is a
	// frame of a stack trace.
	noProblem = regexp.MustCompile(`(?i)\b(?:no|0|zero|without(?: any)?) (?:error|exception)s?\b` +
		`|"?\b(?:error|err|exception)s?"?\s*[:=]+\s*(?:null|nil|<nil>|none|0|false|""|\[\]|\{\})(?:[^\w.]|$)|^\s*at \S.*[:(]|^\s*(?:During handling of the above|The above exception was|\+ CategoryInfo|npm (?:ERR!|error) (?:errno|A complete log|Exit status|path|\S+@\d))`)
	// sourceLine is a line of source code, maybe with its number.
	sourceLine = regexp.MustCompile(`^\s*(?:\d+\s*[:|\t→ ]\s*)?[+-]?\s*(?:except|raise|throw|catch|class|import|from|return|def|func|case|if|else|elif|type|var|let|const|with|try|for|while|assert|public|private|static|fn|use|package|\}|//|#|/\*|\*)(?:[\s(.:{]|$)` +
		`|\berr(?:or)?\s*(?::=|!=|==)|\s:=\s|=>\s|\b(?:errors?\.New|fmt\.Errorf|Errorf?|raises|throw new|console\.error|log(?:ger)?\.\w+|print\w*)\(|[;{]\s*$`)
)

// isProblem reports whether the line states an error. People write about errors, too:
// outside of tool results it must look like a program's output.
func isProblem(line string, tool bool) bool {
	line = core.Clip(line, 400)
	if !mayBeError(line) || noProblem.MatchString(line) || isRuledHeading(line) {
		return false
	}
	if statedError.MatchString(line) {
		return !isSource(line) || !tool
	}
	if sourceLine.MatchString(line) {
		return false
	}
	return errorCode.MatchString(line) || inlineError.MatchString(line) || tool && toolError.MatchString(line)
}

// takeProblem records the line if it states an error. The last line of a Python traceback
// does, whatever the exception's name; of people's text it records the sentence.
func (s *scan) takeProblem(line string) {
	switch {
	case s.isCall || s.isFull(problems):
	case strings.HasPrefix(strings.TrimSpace(line), "Traceback (most recent call last)"):
		s.inTraceback = true
	case s.inTraceback && strings.TrimSpace(line) != "" && line[0] != ' ' && line[0] != '\t':
		s.inTraceback = false
		s.takeEntry(problems, line)
	case s.inTraceback:
	case s.isTool:
		if isProblem(line, true) {
			s.takeEntry(problems, line)
		}
	case mayBeError(line) && len(line) < entryBytes && statedError.MatchString(line): // pasted
		if isProblem(line, false) {
			s.takeEntry(problems, line)
		}
	case mayBeError(line):
		for _, sentence := range prompttext.Sentences(line) {
			if isProblem(sentence, false) {
				s.takeEntry(problems, sentence)
			}
		}
	}
}

// isSource reports whether a line that begins like an error is source code.
func isSource(line string) bool {
	return sourceLine.MatchString(line) && !strings.HasSuffix(strings.TrimSpace(line), "{") // Node prints objects
}

// isRuledHeading reports whether the line is a heading between rules: "==== errors ====".
func isRuledHeading(line string) bool {
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
