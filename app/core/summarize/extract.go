package summarize

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bobbin/app/core"
)

// Bounds of what is looked at and taken.
const (
	lineBytes    = 16_000 // of a line
	perMessage   = 40     // entries of a kind from one message
	perResult    = 12     // and from a tool's result, which may be a long listing
	jsonDepth    = 6      // of a tool call's arguments and of a result
	commandBytes = 2_000
	ownFrames    = 2 // of a stack trace whose files are taken; those below are mostly of libraries
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
	brief   bool       // only files are taken, no folders
	call    bool       // a call's arguments: what they say did not happen yet
	taken   [kinds]int // entries so far
	command string     // the last one, whose exit code may follow
	block   string     // language of the code block that the line is in
	inBlock bool
	prompts bool   // the block shows prompts: its other lines are output
	traced  bool   // a Python traceback goes on
	frames  int    // frames of a trace one after the other
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
func (s *scan) full(k kind) bool {
	if s.tool {
		return s.taken[k] >= perResult
	}
	return s.taken[k] >= perMessage
}

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
		line = strings.TrimRight(core.Clip(line, lineBytes), "\r\n")
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
		s.problem(line)
		if strings.HasPrefix(strings.TrimSpace(line), "at ") {
			s.frames++
		} else {
			s.frames = 0
		}
		if s.frames <= ownFrames {
			s.names(line)
		}
	}
}

// arguments reads a tool call's arguments and returns the command in them. Text
// that is not JSON is read as text.
func (s *scan) arguments(raw string) string {
	var value any
	s.call = true
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
		s.number(name, v)
	case []any:
		for _, item := range v {
			s.value(name, item, depth+1)
		}
	case map[string]any:
		if command := commandOf(v); command != "" && s.call {
			s.run(core.Clip(command, commandBytes))
			s.brief = true // the folders are in the command
			s.names(core.Clip(command, lineBytes))
			s.brief = false
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if !s.call || !isCommandName(key) {
				s.value(key, v[key], depth+1)
			}
		}
	}
}

// number reads a number that stands under a name.
func (s *scan) number(name string, value float64) {
	switch {
	case s.command != "" && isExitCodeName(name):
		s.add(commands, s.command, fmt.Sprintf("exit %d", int64(value)), s.ref)
	case s.tool && (name == "status" || name == "status_code" || name == "statusCode") && value >= 400 && value < 600:
		s.take(problems, fmt.Sprintf("status %d", int64(value)))
	}
}

// named reads a text that stands under a name.
func (s *scan) named(name, value string) {
	switch {
	case strings.TrimSpace(value) == "":
	case s.call && isContentName(name): // what is to be written is not what happened
	case s.tool && isErrorName(name):
		s.take(problems, value)
		s.names(core.Clip(value, lineBytes))
	case len(value) < nameBytes && !strings.Contains(value, "\n") && (windowsPath.MatchString(value) || isPathName(name) && mayBePath(value)):
		s.take(files, tidy(value)) // blanks are part of it
	default:
		s.text(value)
	}
}

func isErrorName(name string) bool {
	return slices.Contains([]string{"error", "err", "exception"}, strings.ToLower(name))
}

func isContentName(name string) bool {
	return slices.Contains([]string{"content", "contents", "file_text", "old_string", "new_string", "old_str", "new_str", "replacement"}, strings.ToLower(name))
}

func isPathName(name string) bool {
	return slices.Contains([]string{"path", "file", "filename", "file_name", "file_path", "filepath", "target_file", "notebook_path", "cwd", "dir", "directory", "folder", "root"}, strings.ToLower(name))
}
