package summarize

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"bobbin/app/core/prompttext"
)

// takeCommandLine records the command after a shell prompt, or a line of a shell's code
// block.
func (s *scan) takeCommandLine(line string) {
	if s.isFull(commands) {
		s.command = ""
		return
	}
	trimmed := strings.TrimSpace(line)
	if m := promptLine.FindStringSubmatch(trimmed); m != nil {
		s.prompts = s.inBlock
		s.recordCommand(cmp.Or(m[1], m[2]))
		return
	}
	if s.inBlock && !s.prompts && isShell(s.block) && !strings.HasPrefix(trimmed, "#") && shellCommand.MatchString(trimmed) {
		s.recordCommand(trimmed)
	}
}

func (s *scan) recordCommand(command string) {
	s.command = prompttext.Line(command, entryBytes)
	s.takeEntry(commands, command)
}

// takeExitCode adds the exit code to the last command.
func (s *scan) takeExitCode(line string) {
	if s.command == "" {
		return
	}
	if m := exitCode.FindStringSubmatch(line); m != nil {
		s.addEntry(commands, entry{text: s.command, note: "exit " + m[1], ref: s.ref})
	}
}

// stringList returns the strings of a JSON list; nil = the value is no list.
func stringList(value any) []string {
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

// commandOf returns the command that a JSON object describes: its text, or its words, with
// the arguments beside it. Empty = none.
func commandOf(object map[string]any) string {
	for key, value := range object {
		if !isCommandName(key) {
			continue
		}
		command, ok := value.(string)
		if !ok {
			command = strings.Join(stringList(value), " ")
		}
		return strings.TrimSpace(strings.Join(append([]string{command}, stringList(object["args"])...), " "))
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
	// shellCommand excludes output that does not look like a command.
	shellCommand = regexp.MustCompile(`^(?:[A-Za-z_][\w.-]*|[.~]{0,2}/\S+)(?: .*)?$`)
	exitCode     = regexp.MustCompile(`(?i)\b(?:exit[ _-]?(?:code|status)|exited(?: with)?(?: (?:code|status))?|return ?code)"?\s*[:=]?\s*(-?\d{1,10})\b`)
)
