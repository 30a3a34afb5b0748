package transfer

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
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

// A text of others in a Markdown document must look as it was meant and do nothing: no
// tag, no image, no link to anything but a bare address, and no fence that goes on
// behind it. Renderers do not agree where code is. So fences are written anew, at the
// margin, where all of them see the same, and in a line of text with a sign that could
// be more than text entities take the place of all such signs, of backticks and of
// backslashes.

// writeText writes a text of others as a part of the document.
func (w *markdown) writeText(text string) {
	var open fence
	indent := 0 // of the fence that is open, as it was written
	for line := range strings.SplitSeq(strings.TrimRight(plainLines(text), "\n"), "\n") {
		_ = w.out.WriteByte('\n') // err has the first error of all
		if open.length > 0 {
			for n := indent; n > 0 && line != "" && (line[0] == ' ' || line[0] == '\t'); n-- {
				line = line[1:]
			}
			rest := strings.TrimSpace(line)
			if len(rest) >= open.length && strings.Trim(rest, string(open.mark)) == "" {
				line, open = open.String(), fence{}
			}
			_, _ = w.out.WriteString(line)
			continue
		}
		opened, language := openedBy(line)
		if opened.length == 0 {
			w.writeInert(line)
			continue
		}
		open, indent = opened, len(line)-len(strings.TrimLeft(line, " \t"))
		_, _ = w.out.WriteString("\n" + open.String() + language) // the empty line ends what might go on
	}
	if open.length > 0 {
		_, _ = w.out.WriteString("\n" + open.String())
	}
	_ = w.out.WriteByte('\n')
}

// lineEnds replaces the ends of lines.
//
//nolint:gochecknoglobals // immutable
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// plainLines returns text without control characters, whose lines end in one way.
func plainLines(text string) string {
	if strings.Contains(text, "\r") {
		text = lineEnds.Replace(text)
	}
	return core.StripControls(text)
}

// fence is what begins and ends a block of code; the zero value is none.
type fence struct {
	mark   byte
	length int
}

// String returns the fence as a line.
func (f fence) String() string { return strings.Repeat(string(f.mark), f.length) }

// openedBy returns the fence that a line of text opens, however it is indented, and the
// language of the code; the zero fence if it opens none.
func openedBy(line string) (open fence, language string) {
	rest := strings.TrimSpace(line)
	if rest == "" || rest[0] != '`' && rest[0] != '~' {
		return fence{}, ""
	}
	open = fence{mark: rest[0], length: len(rest) - len(strings.TrimLeft(rest, rest[:1]))}
	info := rest[open.length:]
	if open.length < 3 || strings.IndexByte(info, open.mark) >= 0 {
		return fence{}, ""
	}
	return open, languages.FindString(strings.TrimSpace(info))
}

// languages matches the name of a language behind a fence.
var languages = regexp.MustCompile(`^[A-Za-z0-9_+#.-]+`)

// active matches what could be a tag, the middle of a link or an image, the definition
// of one, a fence, or an attribute, for some renderer.
var active = regexp.MustCompile("<[^ \t=<0-9-]|\\][ \t]*([(\\[:]|$)|`{3,}|~{3,}|\\{[^}]*[:=]")

// inert has what stands for the bytes that make a line active.
//
//nolint:gochecknoglobals // immutable
var inert = [256]string{'\\': "&#92;", '<': "&#60;", ']': "&#93;", '{': "&#123;", '~': "&#126;", '`': "&#96;"}

// writeInert writes a line of text in which nothing is active.
func (w *markdown) writeInert(line string) {
	if !strings.ContainsAny(line, "<]`~{") || !active.MatchString(line) { // most lines have none of these
		_, _ = w.out.WriteString(line)
		return
	}
	out := w.line[:0] // one write is faster than many short ones, and a Replacer's garbage takes another core
	for i := range len(line) {
		if entity := inert[line[i]]; entity != "" {
			out = append(out, entity...)
		} else {
			out = append(out, line[i])
		}
	}
	w.line = out
	_, _ = w.out.Write(out)
}
