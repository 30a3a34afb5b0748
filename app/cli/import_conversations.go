package cli

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"bobbin/app/core"
)

func (h historyFile) isArchive() bool {
	var mark [4]byte
	_, _ = h.body.ReadAt(mark[:], 0)
	return string(mark[:]) == "PK\x03\x04"
}

// newDecoder returns a decoder of the values in a file: those of a list, or one after the other.
func newDecoder(r io.Reader) (d *json.Decoder, isList bool) {
	in := bufio.NewReader(r)
	if mark, _ := in.Peek(3); string(mark) == "\uFEFF" {
		_, _ = in.Discard(3)
	}
	for {
		if next, _ := in.Peek(1); len(next) == 0 || !unicode.IsSpace(rune(next[0])) {
			isList = string(next) == "["
			break
		}
		_, _ = in.Discard(1)
	}
	d = json.NewDecoder(in)
	if isList {
		_, _ = d.Token() // the bracket
	}
	return d, isList
}

// conversations yields the conversations of the file, of which one at a time is in memory. An error with a title is of
// that one alone.
func (h historyFile) conversations() iter.Seq2[historyFile, error] {
	return func(yield func(historyFile, error) bool) {
		if h.isArchive() {
			h.yieldArchive(yield)
			return
		}
		yieldConversations(h.title, h.body, h.body.Size(), yield)
	}
}

// yieldConversations yields the conversations of a file of that size. An error with the file's name is of all of it.
func yieldConversations(name string, r io.Reader, size int64, yield func(historyFile, error) bool) (goOn bool) {
	d, _ := newDecoder(r)
	for n := 1; d.More(); n++ {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			yield(historyFile{title: name}, core.Errorf(core.ErrInvalid, "conversation %d, at byte %d, is not JSON: %v", n, d.InputOffset(), err))
			return false
		}
		var err error
		one, ok := readConversation(raw)
		if !ok {
			one.title, err = fmt.Sprintf("conversation %d", n), core.Errorf(core.ErrInvalid, "has neither messages nor a mapping")
		}
		if one.through = 100 * d.InputOffset() / max(size, 1); !yield(one, err) {
			return false
		}
	}
	return true
}

// yieldArchive yields the conversations of the archive that ChatGPT's export is.
func (h historyFile) yieldArchive(yield func(historyFile, error) bool) {
	archive, err := zip.NewReader(h.body, h.body.Size())
	if err != nil {
		yield(h, core.Errorf(core.ErrInvalid, "the archive cannot be read: %v", err))
		return
	}
	found := false
	for _, f := range archive.File {
		if ok, _ := path.Match("conversations*.json", path.Base(f.Name)); !ok {
			continue
		}
		found = true
		in, err := f.Open()
		if err == nil && f.UncompressedSize64 > maxHistory {
			err = fmt.Errorf("it is larger than %s bytes", core.Number(maxHistory))
		}
		if err != nil {
			yield(h, core.Errorf(core.ErrInvalid, "%s cannot be read: %v", f.Name, err))
			return
		}
		goOn := yieldConversations(f.Name, in, int64(f.UncompressedSize64), yield) //nolint:gosec // at most maxHistory
		_ = in.Close()
		if !goOn {
			return
		}
	}
	if !found {
		yield(h, core.Errorf(core.ErrInvalid, "the archive has no conversations.json, as ChatGPT's export has"))
	}
}

// readConversation returns one conversation as it is imported; false = the value is none. Members of other types
// than expected are left out.
func readConversation(raw json.RawMessage) (historyFile, bool) {
	var c struct {
		chatGPTConversation
		Messages json.RawMessage `json:"messages"`
	}
	_ = json.Unmarshal(raw, &c)
	switch {
	case c.Mapping != nil:
		var out bytes.Buffer
		leftOut := 0
		lines := json.NewEncoder(&out)
		lines.SetEscapeHTML(false)
		var last core.Message
		var thoughts []string
		path, others := c.path()
		flush := func() {
			if len(thoughts) > 0 {
				last.Parts = []core.Part{{Type: core.PartReasoning, Text: strings.Join(thoughts, "\n\n")}}
			}
			if strings.TrimSpace(last.Content) != "" || len(last.Parts) > 0 {
				_ = lines.Encode(last) // a buffer takes everything
			}
		}
		for _, m := range path {
			next, omitted := m.message()
			leftOut += omitted
			if next.Role != core.RoleAssistant || last.Role != core.RoleAssistant {
				flush()
				last, thoughts = next, nil
			} else {
				last.Content = strings.TrimSpace(last.Content + "\n\n" + next.Content)
				last.Model = cmp.Or(next.Model, last.Model)
			}
			for _, t := range m.Content.Thoughts {
				if t.Content != "" {
					thoughts = append(thoughts, t.Content)
				}
			}
		}
		flush()
		return historyFile{title: c.Title, body: sectionOf(out.Bytes()), format: core.ImportLines, leftOut: leftOut, others: others}, true
	case c.Messages != nil:
		return historyFile{title: c.Title, body: sectionOf(raw), format: core.ImportJSON}, true
	}
	return historyFile{}, false
}

func sectionOf(data []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data)))
}

// chatGPTConversation is a conversation as ChatGPT exports it: a tree, whose path to the current node is what
// its page shows.
type chatGPTConversation struct {
	Title       string                 `json:"title"`
	CurrentNode string                 `json:"current_node"`
	Mapping     map[string]chatGPTNode `json:"mapping"`
}

type chatGPTNode struct {
	Parent  string          `json:"parent"`
	Message *chatGPTMessage `json:"message"` // nil at the root
}

type chatGPTMessage struct {
	Author struct {
		Role string `json:"role"`
		Name string `json:"name"` // of the tool
	} `json:"author"`
	CreateTime float64 `json:"create_time"` // seconds since 1970
	Recipient  string  `json:"recipient"`   // "all", or the tool that is called
	Content    struct {
		Type     string            `json:"content_type"`
		Parts    []json.RawMessage `json:"parts"`
		Text     string            `json:"text"`
		Result   string            `json:"result"`
		Thoughts []struct {
			Content string `json:"content"`
		} `json:"thoughts"`
	} `json:"content"`
	Metadata struct {
		Hidden bool   `json:"is_visually_hidden_from_conversation"`
		Model  string `json:"model_slug"`
		Files  []struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"attachments"` // the images among them are parts, too
	} `json:"metadata"`
}

func (n chatGPTNode) isVisible() bool {
	return n.Message != nil && !n.Message.Metadata.Hidden && n.Message.Author.Role != "system"
}

// path returns the visible messages from the root to the current node, and how many others there are. Without a
// current node the path is that of the newest message.
func (c chatGPTConversation) path() (path []*chatGPTMessage, others int) {
	passed := map[string]bool{}
	at := c.CurrentNode
	if _, isKnown := c.Mapping[at]; !isKnown {
		at = c.newest(0, passed)
	}
	for ; !passed[at]; at = c.parentOf(at, passed) { // a cycle ends, too
		passed[at] = true
		if node := c.Mapping[at]; node.isVisible() {
			path = append(path, node.Message)
		}
	}
	for _, node := range c.Mapping {
		if node.isVisible() {
			others++
		}
	}
	slices.Reverse(path)
	return path, others - len(path)
}

// parentOf returns the parent of a node; of one whose parent was deleted, the newest message before it.
func (c chatGPTConversation) parentOf(id string, passed map[string]bool) string {
	node := c.Mapping[id]
	if _, isKnown := c.Mapping[node.Parent]; isKnown || node.Parent == "" || node.Message == nil {
		return node.Parent
	}
	return c.newest(node.Message.CreateTime, passed)
}

// newest returns the newest message up to the time, which is 0 where it is not known, whose path has no node that was
// passed; of several, as all are without times, that with the longest path.
func (c chatGPTConversation) newest(before float64, passed map[string]bool) (id string) {
	at, longest := math.Inf(-1), 0
	for other, n := range c.Mapping {
		if !n.isVisible() || n.Message.CreateTime < at || before > 0 && n.Message.CreateTime > before {
			continue
		}
		length := c.pathLength(other, passed)
		if length > 0 && (n.Message.CreateTime > at || length > longest || length == longest && other > id) {
			id, at, longest = other, n.Message.CreateTime, length
		}
	}
	return id
}

// pathLength returns how many nodes a path has up to the root or a deleted node; 0 = it gets to one that was passed, or
// is a cycle.
func (c chatGPTConversation) pathLength(id string, passed map[string]bool) (length int) {
	for ; !passed[id] && length <= len(c.Mapping); length++ {
		node, isKnown := c.Mapping[id]
		if !isKnown {
			return length
		}
		id = node.Parent
	}
	return 0
}

// message returns the message in Bobbin's shape, and how many images and files it only mentions.
func (m *chatGPTMessage) message() (core.Message, int) {
	omitted := 0
	texts := []string{m.Content.Text, m.Content.Result}
	for _, raw := range m.Content.Parts {
		var part struct {
			Type string `json:"content_type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &part.Text) != nil {
			if _ = json.Unmarshal(raw, &part); part.Text == "" {
				omitted++
				part.Text = fmt.Sprintf("[%s: not imported]", core.Clip(part.Type, 200))
			}
		}
		texts = append(texts, part.Text)
	}
	for _, f := range m.Metadata.Files {
		if f.ID == "" || !slices.ContainsFunc(m.Content.Parts, func(part json.RawMessage) bool { return bytes.Contains(part, []byte(f.ID)) }) {
			omitted++
			texts = append(texts, fmt.Sprintf("[%s: not imported]", core.Clip(cmp.Or(f.Name, "file"), 200)))
		}
	}
	texts = slices.DeleteFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" })
	text := strings.Join(texts, "\n")
	out := core.Message{Role: core.RoleAssistant, Content: text, Model: m.Metadata.Model, OnPath: true}
	if m.CreateTime > 0 && m.CreateTime < 1<<33 {
		out.CreatedAt = time.UnixMicro(int64(m.CreateTime * 1e6)).UTC()
	}
	switch {
	case m.Author.Role == "user":
		out.Role, out.Model = core.RoleUser, ""
	case text == "":
	case m.Author.Role == "tool":
		out.Content = fmt.Sprintf("[result of %s]\n%s", m.Author.Name, text)
	case m.Recipient != "" && m.Recipient != "all":
		out.Content = fmt.Sprintf("[call of %s]\n%s", m.Recipient, text)
	}
	return out, omitted
}
