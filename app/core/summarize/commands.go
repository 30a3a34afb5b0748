package summarize

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"bobbin/app/core/cut"
)

// commandLine takes a shell prompt's command, or a line of a shell's code block.
func (s *scan) commandLine(line string) {
	if s.full(commands) {
		s.command = ""
		return
	}
	trimmed := strings.TrimSpace(line)
	if m := promptLine.FindStringSubmatch(trimmed); m != nil {
		s.prompts = s.inBlock
		s.run(cmp.Or(m[1], m[2]))
		return
	}
	if s.inBlock && !s.prompts && isShell(s.block) && !strings.HasPrefix(trimmed, "#") && shellCommand.MatchString(trimmed) {
		s.run(trimmed)
	}
}

func (s *scan) run(command string) {
	s.command = cut.Line(command, entryBytes)
	s.take(commands, command)
}

// exitCode adds the code to the command that came last.
func (s *scan) exitCode(line string) {
	if s.command == "" {
		return
	}
	if m := exitCode.FindStringSubmatch(line); m != nil {
		s.add(commands, s.command, "exit "+m[1], s.ref)
	}
}

// words is a list of words as JSON has it; nil = it is none.
func words(value any) []string {
	list, ok := value.([]any)
	if !ok {
		return nil
	}
	var out []string
	for _, item := range list {
		if w, ok := item.(string); ok {
			out = append(out, w)
		}
	}
	return out
}

// commandOf returns the command that an object describes: its text, or its words, with
// the arguments that stand beside it. Empty = it describes none.
func commandOf(object map[string]any) string {
	for key, value := range object {
		if !isCommandName(key) {
			continue
		}
		command, ok := value.(string)
		if !ok {
			command = strings.Join(words(value), " ")
		}
		return strings.TrimSpace(strings.Join(append([]string{command}, words(object["args"])...), " "))
	}
	return ""
}

func isCommandName(name string) bool {
	return slices.Contains([]string{"command", "cmd", "commands", "shell_command", "bash", "argv"}, strings.ToLower(name))
}

func isExitCodeName(name string) bool {
	return slices.Contains([]string{"exit_code", "exitcode", "exit_status", "returncode", "return_code"}, strings.ToLower(name))
}

func isShell(language string) bool {
	return slices.Contains([]string{"sh", "bash", "shell", "zsh", "fish", "powershell", "ps1", "pwsh", "bat", "cmd"}, language)
}

var (
	// promptLine is "$ make", "user@host:~/dir$ make", "PS C:\> make" or "C:\> dir"; a price is not.
	promptLine = regexp.MustCompile(`^(?:(?:\([\w.-]+\) )?(?:[\w.-]+@[\w.-]+[^$#%]{0,80})?\$ ([A-Za-z_./~]\S*(?: .*)?)|(?:PS [^>]{0,80}|[A-Za-z]:\\[^>]{0,80})> ?([A-Za-z_./~]\S*(?: .*)?))$`)
	// shellCommand leaves out closing words and output that looks like none.
	shellCommand = regexp.MustCompile(`^(?:[A-Za-z_][\w.-]*|[.~]{0,2}/\S+)(?: .*)?$`)
	exitCode     = regexp.MustCompile(`(?i)\b(?:exit[ _-]?(?:code|status)|exited(?: with)?(?: (?:code|status))?|return ?code)"?\s*[:=]?\s*(-?\d{1,10})\b`)
)
