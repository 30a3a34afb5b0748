package transfer

import (
	"bufio"
	"cmp"
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode"

	"bobbin/app/core"
)

// markdown writes a conversation to be read. What was said keeps its own Markdown,
// but cannot change what stands around it: fences that it leaves open are closed,
// and tags are shown and not obeyed.
type markdown struct {
	out  *bufio.Writer
	last string // speaker and day of the message before
}

func (w *markdown) title(s core.Session) {
	fmt.Fprintf(w.out, "# %s\n\n", inline(cmp.Or(s.Title, "Conversation")))
	fmt.Fprintf(w.out, "Session %s · agent %s · %s · %d messages\n", s.ID, inline(s.Agent), s.CreatedAt.UTC().Format("2006-01-02"), s.MessageCount)
}

// message writes one message under the name of its speaker.
func (w *markdown) message(m core.Message) error {
	if m.Role == core.RoleTool {
		w.folded("Result of "+cmp.Or(m.ToolName, "a tool"), m.Content)
		return w.err()
	}
	head := fmt.Sprintf("## %s · %s", speaker(m), m.CreatedAt.UTC().Format("2006-01-02 15:04"))
	if head != w.last || m.Role != core.RoleAssistant {
		fmt.Fprintf(w.out, "\n%s\n", head)
	}
	w.last = head
	if text := strings.TrimSpace(m.Content); text != "" {
		fmt.Fprintf(w.out, "\n%s\n", quoted(text))
	}
	for _, p := range m.Parts {
		if p.Type == "image" || p.Type == "file" {
			fmt.Fprintf(w.out, "\n*%s %s*\n", p.Type, inline(cmp.Or(p.Name, p.MediaType)))
		}
	}
	for _, c := range m.ToolCalls {
		w.folded("Calls "+c.Name, prettyArguments(c.Arguments))
	}
	if m.Status == core.MessagePartial {
		w.line("*(canceled here)*")
	}
	return w.err()
}

// err returns the first error of writing.
func (w *markdown) err() error {
	_, err := w.out.Write(nil)
	return err
}

func (w *markdown) line(text string) { fmt.Fprintf(w.out, "\n%s\n", text) }

// folded writes a text that is shown when it is asked for.
func (w *markdown) folded(title, text string) {
	fence := fenceFor(text)
	title = html.EscapeString(strings.Join(strings.Fields(title), " ")) // no Markdown between these tags
	fmt.Fprintf(w.out, "\n<details><summary>%s</summary>\n\n%s\n%s\n%s\n\n</details>\n", title, fence, strings.TrimRight(text, "\n"), fence)
}

// speaker returns who says a message.
func speaker(m core.Message) string {
	name := map[core.Role]string{core.RoleUser: "User", core.RoleAssistant: "Assistant", core.RoleSystem: "System"}[m.Role]
	if m.Author != "" {
		name += " (" + inline(m.Author) + ")"
	}
	return name
}

// fenceFor returns a fence that the text does not hold.
func fenceFor(text string) string {
	longest, run := 0, 0
	for _, r := range text {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return strings.Repeat("`", max(3, longest+1))
}

// inline returns a text of others for the middle of a line: one line, every
// character for itself.
func inline(text string) string {
	var b strings.Builder
	for _, r := range core.Clip(strings.Join(strings.Fields(text), " "), 300) {
		switch {
		case unicode.IsControl(r):
			continue
		case r == '<':
			b.WriteString("&lt;")
			continue
		case r == '&':
			b.WriteString("&amp;")
			continue
		case strings.ContainsRune("\\`*_[]#|>~", r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// quoted returns a text of others as a part of the document.
func quoted(text string) string {
	var b strings.Builder
	var open fence
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text) // either ends a line
	for line := range strings.Lines(text) {
		inside := open.length > 0
		open = open.after(line)
		if !inside && open.length == 0 {
			line = untagged(line)
		}
		b.WriteString(line)
	}
	if open.length > 0 {
		b.WriteString("\n" + strings.Repeat(string(open.mark), open.length))
	}
	return b.String()
}

// fence is an open code fence; the zero value is none.
type fence struct {
	mark   byte
	length int
}

// after returns what is open after the line (CommonMark 4.5).
func (f fence) after(line string) fence {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	rest := strings.TrimSpace(line)
	if indent > 3 || len(rest) < 3 || rest[0] != '`' && rest[0] != '~' {
		return f
	}
	n := len(rest) - len(strings.TrimLeft(rest, rest[:1]))
	info := strings.TrimSpace(rest[n:])
	switch {
	case n < 3:
		return f
	case f.length == 0 && (rest[0] == '~' || !strings.Contains(info, "`")):
		return fence{mark: rest[0], length: n}
	case f.length > 0 && rest[0] == f.mark && n >= f.length && info == "":
		return fence{}
	}
	return f
}

// structure matches tags that change what stands behind them, wherever they are.
var structure = regexp.MustCompile(`(?i)<([!?]|/?(details|summary|script|style|pre|textarea|iframe|template|title|xmp)\b)`)

// tag matches the beginning of every tag.
var tag = regexp.MustCompile(`<([!?/]|[a-zA-Z])`)

// untagged shows the tags of a line. In code spans, as far as one line shows where
// they are, harmless ones stay as they are: there the backslash would be seen.
func untagged(line string) string {
	spans := strings.Split(line, "`")
	balanced := len(spans)%2 == 1
	for i, span := range spans {
		pattern := tag
		if balanced && i%2 == 1 {
			pattern = structure
		}
		spans[i] = pattern.ReplaceAllString(span, `\<$1`)
	}
	return strings.Join(spans, "`")
}
