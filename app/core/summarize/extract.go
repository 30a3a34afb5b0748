package summarize

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"bobbin/app/core"
)

// Bounds of what is looked at and taken.
const (
	lineBytes    = 16_000 // of a line
	perMessage   = 40     // entries of a kind from one message
	jsonDepth    = 6      // of a tool call's arguments and of a result
	commandBytes = 2_000
)

// extract adds to the ledger what the messages name: file paths, commands with
// their exit codes, errors, URLs. It is linear in the size of the messages.
func (l *ledger) extract(messages []core.Message) {
	open := map[string]string{} // call id → its command, until the result is seen
	for _, m := range messages {
		if m.Role == core.RoleSystem {
			continue
		}
		s := scan{ledger: l, ref: ref(m), tool: m.Role == core.RoleTool}
		if command, ok := open[m.ToolCallID]; ok && s.tool {
			s.command = command
			delete(open, m.ToolCallID)
		}
		s.content(m)
		for _, c := range m.ToolCalls {
			if command := s.arguments(c.Arguments); command != "" && c.ID != "" {
				open[c.ID] = command
			}
		}
	}
}

// scan reads one message.
type scan struct {
	*ledger
	ref     string
	tool    bool       // a tool's result: more of it is machine output
	taken   [kinds]int // entries so far
	command string     // the last one, whose exit code may follow
	block   string     // language of the code block that the line is in
	inBlock bool
	prompts bool   // the block shows prompts: its other lines are output
	last    string // a line equal to the one before says nothing
}

// take adds an entry unless the message gave enough of the kind.
func (s *scan) take(k kind, text string) {
	if s.full(k) {
		return
	}
	s.taken[k]++
	s.add(k, text, "", s.ref)
}

// full reports whether the message gave enough of the kind. It is asked before
// any dear test, so that a huge message costs little more than its reading.
func (s *scan) full(k kind) bool { return s.taken[k] >= perMessage }

// content reads what the message says. A tool's result is often JSON.
func (s *scan) content(m core.Message) {
	var value any
	trimmed := strings.TrimSpace(m.Content)
	if s.tool && trimmed != "" && strings.ContainsRune("{[", rune(trimmed[0])) && json.Unmarshal([]byte(trimmed), &value) == nil {
		s.value("", value, 0)
	} else {
		s.text(m.Content)
	}
	if m.Status == core.MessageFailed && s.tool && s.taken[problems] == 0 {
		s.take(problems, trimmed)
	}
}

// text reads all lines of a text.
func (s *scan) text(text string) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	for line := range strings.Lines(text) {
		line = strings.TrimRight(head(line, lineBytes), "\r\n")
		if line == "" || line == s.last {
			continue
		}
		s.last = line
		if info, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
			s.inBlock, s.prompts = !s.inBlock, false
			s.block = strings.ToLower(strings.TrimSpace(info))
			continue
		}
		s.commandLine(line)
		s.exitCode(line)
		if !s.full(problems) && isErrorLine(line, s.tool) {
			s.take(problems, line)
		}
		s.names(line)
	}
}

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
	s.command = oneLine(command, entryBytes)
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

// arguments reads a tool call's arguments and returns the command in them. Text
// that is not JSON is read as text.
func (s *scan) arguments(raw string) string {
	var value any
	if json.Unmarshal([]byte(raw), &value) != nil {
		s.text(raw)
		return ""
	}
	s.value("", value, 0)
	return s.command
}

// value reads a JSON value that stands under a name.
func (s *scan) value(name string, value any, depth int) {
	if depth > jsonDepth {
		return
	}
	switch v := value.(type) {
	case string:
		s.named(name, v)
	case float64:
		if s.command != "" && isExitCodeName(name) {
			s.add(commands, s.command, fmt.Sprintf("exit %d", int64(v)), s.ref)
		}
	case []any:
		if isCommandName(name) {
			s.named(name, joinWords(v))
			return
		}
		for _, item := range v {
			s.value(name, item, depth+1)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			s.value(key, v[key], depth+1)
		}
	}
}

// named reads a text that stands under a name.
func (s *scan) named(name, value string) {
	switch {
	case strings.TrimSpace(value) == "":
	case !s.tool && isCommandName(name):
		s.run(head(value, commandBytes))
		s.names(head(value, lineBytes))
	case s.tool && isErrorName(name):
		s.take(problems, value)
		s.names(head(value, lineBytes))
	case len(value) < nameBytes && !strings.Contains(value, "\n") && windowsPath.MatchString(value):
		s.take(files, value) // blanks are part of it
	default:
		s.text(value)
	}
}

func isErrorName(name string) bool {
	switch strings.ToLower(name) {
	case "error", "err", "exception":
		return true
	default:
		return false
	}
}

func isExitCodeName(name string) bool {
	switch strings.ToLower(name) {
	case "exit_code", "exitcode", "exit_status", "returncode", "return_code":
		return true
	default:
		return false
	}
}

func isCommandName(name string) bool {
	switch strings.ToLower(name) {
	case "command", "cmd", "commands", "shell_command", "bash":
		return true
	default:
		return false
	}
}

func joinWords(list []any) string {
	var words []string
	for _, item := range list {
		if w, ok := item.(string); ok {
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}

func isShell(language string) bool {
	switch language {
	case "sh", "bash", "shell", "zsh", "fish", "powershell", "ps1", "bat", "cmd":
		return true
	default:
		return false
	}
}

var (
	// promptLine is "$ make", "user@host:~/dir$ make" or "PS C:\> make"; a price is not.
	promptLine = regexp.MustCompile(`^(?:(?:\([\w.-]+\) )?(?:[\w.-]+@[\w.-]+[^$#%]{0,80})?\$ ([A-Za-z_./~]\S*(?: .*)?)|PS [^>]{0,80}> ([A-Za-z_./~]\S*(?: .*)?))$`)
	// shellCommand leaves out closing words and output that looks like none.
	shellCommand = regexp.MustCompile(`^(?:[A-Za-z_][\w.-]*|[.~]{0,2}/\S+)(?: .*)?$`)
	exitCode     = regexp.MustCompile(`(?i)\b(?:exit[ _-]?(?:code|status)|exited(?: with)?(?: (?:code|status))?|return ?code)"?\s*[:=]?\s*(-?\d{1,10})\b`)
	windowsPath  = regexp.MustCompile(`^(?:[A-Za-z]:[\\/]|\\\\)[^<>|*?"]+$`)
)
