package summarize

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bobbin/app/core"
)

// Bounds of what is read and recorded.
const (
	longLine     = 16_000 // of a line
	perMessage   = 40     // entries of a kind from one message
	perResult    = 12     // and from a tool's result, which may be a long listing
	jsonDepth    = 6      // of a tool call's arguments and of a result
	commandBytes = 2_000
	ownFrames    = 2 // of a stack trace whose files are recorded; lower frames are mostly of libraries
)

// extractFacts adds the facts of the messages to the ledger: file paths, commands with
// their exit codes, errors, URLs, wishes. It is linear in the size of the messages.
func (l *ledger) extractFacts(messages []core.Message) {
	open := map[string]string{} // call id → its command, until the result is read
	for _, m := range messages {
		if m.Role == core.RoleSystem {
			continue
		}
		s := scan{ledger: l, ref: messageRef(m), role: m.Role, isTool: m.Role == core.RoleTool}
		if command, ok := open[m.ToolCallID]; ok && s.isTool {
			s.command = command
			delete(open, m.ToolCallID)
		}
		s.readContent(m)
		for _, c := range m.ToolCalls {
			if command := s.readArguments(c.Arguments); command != "" && c.ID != "" {
				open[c.ID] = command
			}
		}
	}
}

// scan reads one message.
type scan struct {
	*ledger
	ref         string
	role        core.Role
	isTool      bool       // a tool's result, mostly machine output
	filesOnly   bool       // record files, no folders
	isCall      bool       // a call's arguments: nothing of them has happened yet
	taken       [kinds]int // entries of this message
	command     string     // the last one, whose exit code may follow
	block       string     // language of the current code block
	inBlock     bool
	prompts     bool   // the block shows prompts: its other lines are output
	inTraceback bool   // of Python
	frames      int    // consecutive frames of a stack trace
	last        string // the previous line; repeated lines are skipped
}

// takeEntry adds an entry unless the message has enough of the kind.
func (s *scan) takeEntry(k kind, text string) {
	if s.isFull(k) {
		return
	}
	if s.isTool {
		if text = s.stripOrders(k, text); text == "" {
			return
		}
	}
	s.taken[k]++
	s.addEntry(k, entry{text: text, source: s.role, ref: s.ref})
}

// stripOrders returns an entry of a tool without orders: an error without the sentences
// that are orders; a name that only an order of the current line has becomes empty.
func (s *scan) stripOrders(k kind, text string) string {
	if k == problems {
		return withoutOrders(text)
	}
	if strings.HasPrefix(s.last, text) || !strings.Contains(s.last, text) || strings.Contains(withoutOrders(s.last), text) {
		return text
	}
	return ""
}

// isFull reports whether the message has enough entries of the kind. It is checked before
// every expensive test, so that a huge message costs little more than reading it.
func (s *scan) isFull(k kind) bool {
	if s.isTool {
		return s.taken[k] >= perResult
	}
	return s.taken[k] >= perMessage
}

// readContent reads the content of a message. A tool's result is often JSON.
func (s *scan) readContent(m core.Message) {
	if m.Role == core.RoleUser {
		s.takeWishes(m.Content)
	}
	var value any
	trimmed := strings.TrimSpace(m.Content)
	if s.isTool && trimmed != "" && strings.ContainsRune("{[", rune(trimmed[0])) && json.Unmarshal([]byte(trimmed), &value) == nil {
		s.readValue("", value, 0)
	} else {
		s.readText(m.Content)
	}
	if m.Status == core.MessageFailed && s.isTool && s.taken[problems] == 0 {
		s.takeEntry(problems, trimmed)
	}
}

// readText reads all lines of a text.
func (s *scan) readText(text string) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	for line := range strings.Lines(text) {
		line = strings.TrimRight(core.Clip(line, longLine), "\r\n")
		if line == "" || line == s.last {
			continue
		}
		s.last = line
		if info, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
			s.inBlock, s.prompts = !s.inBlock, false
			s.block = strings.ToLower(strings.TrimSpace(info))
			continue
		}
		s.takeCommandLine(line)
		s.takeExitCode(line)
		s.takeProblem(line)
		if strings.HasPrefix(strings.TrimSpace(line), "at ") {
			s.frames++
		} else {
			s.frames = 0
		}
		if s.frames <= ownFrames {
			s.takeNames(line)
		}
	}
}

// readArguments reads a tool call's arguments and returns the command in them. Text
// that is not JSON is read as text.
func (s *scan) readArguments(raw string) string {
	var value any
	s.isCall = true
	if json.Unmarshal([]byte(raw), &value) != nil {
		s.readText(raw)
		return ""
	}
	s.readValue("", value, 0)
	return s.command
}

// readValue reads the JSON value of a name.
func (s *scan) readValue(name string, value any, depth int) {
	if depth > jsonDepth {
		return
	}
	switch v := value.(type) {
	case string:
		s.readNamedText(name, v)
	case float64:
		s.readNumber(name, v)
	case []any:
		for _, item := range v {
			s.readValue(name, item, depth+1)
		}
	case map[string]any:
		if command := commandOf(v); command != "" && s.isCall {
			s.recordCommand(core.Clip(command, commandBytes))
			s.filesOnly = true // the command shows the folders
			s.takeNames(core.Clip(command, longLine))
			s.filesOnly = false
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if !s.isCall || !isCommandName(key) {
				s.readValue(key, v[key], depth+1)
			}
		}
	}
}

// readNumber reads the number of a name.
func (s *scan) readNumber(name string, value float64) {
	switch {
	case s.command != "" && isExitCodeName(name):
		s.addEntry(commands, entry{text: s.command, note: fmt.Sprintf("exit %d", int64(value)), ref: s.ref})
	case s.isTool && (name == "status" || name == "status_code" || name == "statusCode") && value >= 400 && value < 600:
		s.takeEntry(problems, fmt.Sprintf("status %d", int64(value)))
	}
}

// readNamedText reads the text of a name.
func (s *scan) readNamedText(name, value string) {
	switch {
	case strings.TrimSpace(value) == "":
	case s.isCall && isContentName(name): // text to write is not an event
	case s.isTool && isErrorName(name):
		s.takeEntry(problems, value)
		s.takeNames(core.Clip(value, longLine))
	case len(value) < nameBytes && !strings.Contains(value, "\n") && (windowsPath.MatchString(value) || isPathName(name) && mayBePath(value)):
		s.takeEntry(files, tidyPath(value)) // may contain blanks
	default:
		s.readText(value)
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
