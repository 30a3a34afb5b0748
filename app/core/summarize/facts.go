package summarize

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
	"bobbin/app/core/standing"
)

// The headings of the ledger.
const (
	userHeading     = "User Messages"
	filesHeading    = "Files Referenced"
	commandsHeading = "Commands Executed"
	errorsHeading   = "Errors Encountered"
	urlsHeading     = "URLs"
)

// The kinds of facts.
const (
	FactPath    = "path"
	FactCommand = "command"
	FactError   = "error"
	FactURL     = "url"
)

// Fact is an entry that the ledger keeps of a conversation.
type Fact struct {
	Kind string
	Text string // one line, as in the messages except for white space
}

// Facts returns what the ledger extracts from the messages besides the users' words, by kind, each
// kind in the order of the last mention; of very many the newest. Facts that are too long for a
// line are left out.
func Facts(messages []core.Message) []Fact {
	o := factSections()
	o.addFacts(messages)
	var facts []Fact
	for i, kind := range []string{FactPath, FactCommand, FactError, FactURL} {
		for _, l := range o[i].lines {
			if !strings.HasSuffix(l.text, prompttext.Ellipsis) {
				facts = append(facts, Fact{kind, l.text})
			}
		}
	}
	return facts
}

// factSections returns the sections of facts, empty. An error is quoted: it is evidence, not an order.
func factSections() outline {
	return outline{
		{heading: filesHeading, share: 2}, {heading: commandsHeading, share: 2},
		{heading: errorsHeading, share: 2, before: `tool said: "`, after: `"`}, {heading: urlsHeading, share: 1},
	}
}

// messageSection returns an empty section of messages. Those that set something for all answers stay longest.
func messageSection(heading string, share int) *section {
	return &section{heading: heading, share: share, before: `"`, after: `"`, rank: func(s *section) {
		for i, l := range s.lines {
			s.lines[i].rank = float64(len(standing.Find(l.text)))
		}
	}}
}

// Bounds of what is read and recorded.
const (
	scanBytes  = 64 << 10 // of a message, and of a JSON value
	entryBytes = 240      // of a fact
	nameBytes  = 300      // of a path in a field for paths
	perMessage = 40       // facts of a kind from one message
	perResult  = 12       // and from a tool's result, which may be a long listing
	perFailure = 3        // errors of a call that failed
	jsonDepth  = 6
)

var (
	urls = regexp.MustCompile("\\b(?:https?|ftp|wss?|ssh|git|s3)://(?:[^\\s()<>\"'`\\\\|^{}“”‘’«»。，、；：！？「」『』（）]|\\([^\\s()<>]*\\))+")
	// files are paths to a name with an extension, absolute paths of several names, and bare names with
	// an extension that is common.
	files = regexp.MustCompile(`(?:^|[^\p{L}\p{N}_./\\@~-])((?:(?:[A-Za-z]:[\\/]|~/|\.{0,2}/)(?:[\p{L}\p{N}_.@+-]+[\\/])*|(?:[\p{L}\p{N}_.@+-]+[\\/])+)[\p{L}\p{N}_.@+-]*\.[A-Za-z][A-Za-z0-9]{0,9}\b` +
		`|(?:~|\.{1,2})?(?:/[\p{L}\p{N}_.@+-]+){2,}` +
		`|[\p{L}\p{N}_.@+-]*\.(?:go|mod|sum|py|m?js|tsx?|jsx|vue|java|kt|rs|c|h|cc|[ch]pp|cs|rb|php|swift|sh|ps1|bat|sql|md|txt|jsonl?|ya?ml|toml|ini|cfg|conf|env|xml|html|s?css|[ct]sv|lock|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|svg|zip|tar|gz|ipynb|proto|tf)\b` +
		`|(?:Make|Docker)file\b)`)
	exitCode = regexp.MustCompile(`(?is)^.*\b(?:exit(?:ed)?(?: with)?[ _-]?(?:code|status)|return ?code)"?\s*[:=]?\s*(-?\d{1,10})\b`)
	// errorLine is a line of a failed call's output that names an error, or begins with a place.
	errorLine = regexp.MustCompile(`(?im)^.*(?:error|exception|panic|fatal).*$|^\s*\S+:\d+: .*$`)

	// The names of JSON members, in lower case.
	commandName = regexp.MustCompile(`^(?:command|commands|cmd|shell_command|bash|argv)$`)
	exitName    = regexp.MustCompile(`^(?:exit_?code|exit_?status|return_?code)$`)
	errorName   = regexp.MustCompile(`^(?:error|err|exception)(?:_?message)?$`)
	pathName    = regexp.MustCompile(`(?:^|_)(?:path|file|filename|file_?path|file_?name)$`)
	contentName = regexp.MustCompile(`^(?:contents?|file_text|(?:old|new)_str(?:ing)?|replacement)$`) // text to write is no event
)

// addFacts adds the facts of the messages: files and URLs, and of tool calls the commands with their
// exit codes, and the errors of those that failed. It is linear in the size of the messages.
func (o outline) addFacts(messages []core.Message) {
	open := map[string]string{} // call id → its command, until the result is read
	for _, m := range messages {
		f := factReader{o, messageRef(m)}
		switch m.Role {
		case core.RoleSystem:
			continue
		case core.RoleTool:
			f.readResult(m, open[m.ToolCallID])
			delete(open, m.ToolCallID)
		default:
			f.readText(m.Content)
		}
		for _, c := range m.ToolCalls {
			if command := f.readCall(c.Arguments); command != "" && c.ID != "" {
				open[c.ID] = command
			}
		}
	}
}

// factReader reads one message.
type factReader struct {
	outline
	ref string
}

func (f factReader) addFact(heading, text, note string) {
	f.section(heading).add(prompttext.Line(text, entryBytes), note, f.ref)
}

// readText adds the files and URLs of a text.
func (f factReader) readText(text string) {
	text = core.Clip(strings.ToValidUTF8(text, "\uFFFD"), scanBytes)
	if strings.Contains(text, "://") {
		for _, url := range urls.FindAllString(text, perMessage) {
			f.addFact(urlsHeading, strings.TrimRight(url, ".,;:!?*_"), "")
		}
	}
	f.readFiles(text, perMessage)
}

func (f factReader) readFiles(text string, limit int) {
	if strings.Contains(text, "://") {
		text = urls.ReplaceAllString(text, " ")
	}
	for _, m := range files.FindAllStringSubmatch(text, limit) {
		f.addFact(filesHeading, m[1], "")
	}
}

// readCall adds the facts of a tool call's arguments, and returns the command in them.
func (f factReader) readCall(arguments string) string {
	var value any
	if json.Unmarshal([]byte(arguments), &value) != nil {
		f.readText(arguments)
		return ""
	}
	var command, args []string
	eachMember("", value, 0, func(name string, value any) {
		text, ok := value.(string)
		switch {
		case !ok || contentName.MatchString(name):
		case commandName.MatchString(name):
			command = append(command, text)
		case name == "args":
			args = append(args, text)
		case pathName.MatchString(name) && len(text) < nameBytes && strings.Trim(text, `./\`) != "":
			f.addFact(filesHeading, text, "")
		default:
			f.readText(text)
		}
	})
	if len(command) == 0 {
		return ""
	}
	text := core.Clip(strings.Join(append(command, args...), " "), scanBytes)
	f.addFact(commandsHeading, text, "")
	f.readFiles(text, perMessage)
	return text
}

// readResult adds the facts of a tool's result: the exit code of its command, the errors, and the
// files that it names. Other text of a tool is not the conversation's own.
func (f factReader) readResult(m core.Message, command string) {
	text, exit, failed := m.Content, "", m.Status == core.MessageFailed
	var value any
	if err := json.Unmarshal([]byte(m.Content), &value); err == nil {
		var texts []string
		eachMember("", value, 0, func(name string, value any) {
			switch v := value.(type) {
			case float64:
				if exitName.MatchString(name) {
					exit = fmt.Sprint(int64(v))
				}
			case string:
				if texts = append(texts, v); errorName.MatchString(name) && strings.TrimSpace(v) != "" {
					f.addFact(errorsHeading, v, "")
				}
			}
		})
		text = strings.Join(texts, "\n")
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if found := exitCode.FindStringSubmatch(prompttext.Tail(text, scanBytes)); exit == "" && found != nil {
		exit = found[1]
	}
	if command != "" && exit != "" {
		f.addFact(commandsHeading, command, "exit "+exit)
	}
	text = core.Clip(text, scanBytes)
	f.readFiles(text, perResult)
	if !failed && (exit == "" || exit == "0") {
		return
	}
	errors := errorLine.FindAllString(text, perFailure)
	if len(errors) == 0 && failed {
		errors = []string{text}
	}
	for _, e := range errors {
		f.addFact(errorsHeading, e, "")
	}
}

// eachMember calls yield with the texts and numbers of a JSON value and their names in lower case, in order.
func eachMember(name string, value any, depth int, yield func(name string, value any)) {
	switch v := value.(type) {
	case []any:
		for _, item := range v[:min(len(v), maxLines)] {
			if depth < jsonDepth {
				eachMember(name, item, depth+1, yield)
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if depth < jsonDepth {
				eachMember(strings.ToLower(key), v[key], depth+1, yield)
			}
		}
	default:
		yield(name, v)
	}
}

// quotable returns the messages as code may quote them: without what users set in them for the
// whole conversation, which prompts list beside the summary while it stands. A message whose
// instruction was edited by hand is not quoted, as the instruction's own words are not known.
func (r Request) quotable() []core.Message {
	messages := slices.Clone(r.Messages)
	for i, m := range messages {
		for _, in := range r.Instructions {
			switch {
			case m.ID == "" || in.MessageID != m.ID:
			case in.EditedAt != nil:
				messages[i].Content = ""
			default:
				messages[i].Content = strings.Replace(messages[i].Content, in.Text, "", 1)
			}
		}
	}
	return messages
}

// dropInstructions removes the instructions from the users' messages that earlier summaries quoted.
func (o outline) dropInstructions(instructions []core.StandingInstruction) {
	said := o.section(userHeading)
	if said == nil {
		return
	}
	for _, in := range instructions {
		text := prompttext.Line(prompttext.Harmless(in.Text), lineBytes)
		for i, l := range said.lines {
			if in.EditedAt != nil && in.Seq > 0 && l.ref == strconv.FormatInt(in.Seq, 10) {
				said.lines[i].text = ""
				continue
			}
			said.lines[i].text = prompttext.Line(strings.Replace(l.text, text, "", 1), lineBytes)
		}
	}
	said.lines = slices.DeleteFunc(said.lines, func(l line) bool { return l.text == "" })
}
