package transfer

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"bobbin/app/core"
)

// markdown writes a conversation to be read. What was said keeps its own Markdown,
// but cannot change what stands around it: fences that it leaves open are closed,
// and tags, images and links are shown and not obeyed.
type markdown struct {
	out  *bufio.Writer
	last string // speaker and day of the message before
	line []byte // the room of the line that is being written
}

// writeMessage writes one message under the name of its speaker.
func (w *markdown) writeMessage(m core.Message) error {
	if m.Role == core.RoleTool {
		w.writeCode("Result of "+cmp.Or(m.ToolName, "a tool")+originOf(m), m.Content)
		return w.err()
	}
	name := map[core.Role]string{core.RoleUser: "User", core.RoleAssistant: "Assistant", core.RoleSystem: "System"}[m.Role]
	if m.Author != "" {
		name += " (" + escapeInline(m.Author) + ")"
	}
	head := fmt.Sprintf("## %s · %s", name+originOf(m), m.CreatedAt.UTC().Format("2006-01-02 15:04 UTC"))
	if head != w.last || m.Role != core.RoleAssistant {
		fmt.Fprintf(w.out, "\n%s\n", head)
	}
	w.last = head
	if text := strings.TrimSpace(m.Content); text != "" {
		w.writeText(text)
	}
	for _, p := range m.Parts {
		if p.Type == "image" || p.Type == "file" {
			fmt.Fprintf(w.out, "\n*%s %s*\n", p.Type, escapeInline(cmp.Or(p.Name, p.MediaType)))
		}
	}
	for _, c := range m.ToolCalls {
		var pretty bytes.Buffer
		if json.Indent(&pretty, []byte(c.Arguments), "", "  ") != nil {
			pretty = *bytes.NewBufferString(c.Arguments)
		}
		w.writeCode("Calls "+c.Name, pretty.String())
	}
	if m.Status == core.MessagePartial {
		_, _ = w.out.WriteString("\n*(canceled here)*\n") // err has its first error
	}
	return w.err()
}

// err returns the first error of writing.
func (w *markdown) err() error {
	_, err := w.out.Write(nil)
	return err
}

// writeCode writes a text as it is, under a title. No tag folds it: some renderers take all
// that stands between tags for tags.
func (w *markdown) writeCode(title, text string) {
	text = plainLines(text)
	longest := 0
	for run := range strings.FieldsFuncSeq(text, func(r rune) bool { return r != '`' }) {
		longest = max(longest, len(run))
	}
	fence := strings.Repeat("`", max(3, longest+1))
	fmt.Fprintf(w.out, "\n**%s**\n\n%s\n%s\n%s\n", escapeInline(title), fence, strings.TrimRight(text, "\n"), fence)
}

// originOf says of a message that a client has sent as history that nobody said it here.
func originOf(m core.Message) string {
	if m.Source == core.SourceClient {
		return " (sent by the client)"
	}
	return ""
}

// escapes has every character of Markdown stand for itself.
//
//nolint:gochecknoglobals // immutable
var escapes = strings.NewReplacer("<", "&#60;", "{", "&#123;", "&", "&amp;", `\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "#", `\#`, "|", `\|`, ">", `\>`, "~", `\~`)

// escapeInline returns a text of others for the middle of a line.
func escapeInline(text string) string {
	return escapes.Replace(core.Clip(strings.Join(strings.Fields(core.StripControls(text)), " "), 300))
}
