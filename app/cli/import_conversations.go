package cli

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"path"
	"strings"

	"bobbin/app/core"
)

// hasConversations reports whether the file holds whole conversations: the export of ChatGPT, as ZIP archive or
// conversations.json, or several objects with messages, as files for fine-tuning have one a line. Any other file
// is one history.
func (h historyFile) hasConversations() bool {
	if h.isArchive() {
		return true
	}
	var raw json.RawMessage
	d, isList := h.decoder()
	if d.Decode(&raw) != nil {
		return false
	}
	one, ok := readConversation(raw)
	return ok && (isList || one.format == core.ImportLines || d.More())
}

func (h historyFile) isArchive() bool { return bytes.HasPrefix(h.data, []byte("PK\x03\x04")) }

// decoder returns a decoder of the values in the file: those of a list, or one after the other.
func (h historyFile) decoder() (d *json.Decoder, isList bool) {
	data := bytes.TrimSpace(bytes.TrimPrefix(h.data, []byte("\uFEFF")))
	d = json.NewDecoder(bytes.NewReader(data))
	if isList = bytes.HasPrefix(data, []byte("[")); isList {
		_, _ = d.Token() // the bracket
	}
	return d, isList
}

// conversations yields the conversations of the file. An error with a title is of that one alone.
func (h historyFile) conversations() iter.Seq2[historyFile, error] {
	return func(yield func(historyFile, error) bool) {
		if h.isArchive() {
			h.yieldArchive(yield)
			return
		}
		d, _ := h.decoder()
		for n := 1; d.More(); n++ {
			var raw json.RawMessage
			if err := d.Decode(&raw); err != nil {
				yield(h, core.Errorf(core.ErrInvalid, "conversation %d, at byte %d, is not JSON: %v", n, d.InputOffset(), err))
				return
			}
			one, ok := readConversation(raw)
			if !ok {
				one.title = fmt.Sprintf("conversation %d", n)
				if !yield(one, core.Errorf(core.ErrInvalid, "has neither messages nor a mapping")) {
					return
				}
			} else if !yield(one, nil) {
				return
			}
		}
	}
}

// yieldArchive yields the conversations of the archive that ChatGPT's export is.
func (h historyFile) yieldArchive(yield func(historyFile, error) bool) {
	archive, err := zip.NewReader(bytes.NewReader(h.data), int64(len(h.data)))
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
		data, err := readArchived(f)
		if err != nil {
			yield(h, err)
			return
		}
		for one, err := range (historyFile{title: f.Name, data: data}).conversations() {
			if !yield(one, err) {
				return
			}
		}
	}
	if !found {
		yield(h, core.Errorf(core.ErrInvalid, "the archive has no conversations.json, as ChatGPT's export has"))
	}
}

func readArchived(f *zip.File) ([]byte, error) {
	in, err := f.Open()
	if err != nil {
		return nil, core.Errorf(core.ErrInvalid, "%s cannot be read: %v", f.Name, err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxHistory+1))
	switch {
	case err != nil:
		return nil, core.Errorf(core.ErrInvalid, "%s cannot be read: %v", f.Name, err)
	case len(data) > maxHistory || bytes.HasPrefix(data, []byte("PK\x03\x04")):
		return nil, core.Errorf(core.ErrTooLarge, "%s is larger than %s bytes, or an archive itself", f.Name, core.Number(maxHistory))
	}
	return data, nil
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
		flush := func() {
			if strings.TrimSpace(last.Content) != "" || len(last.Parts) > 0 {
				_ = lines.Encode(last) // a buffer takes everything
			}
		}
		for _, m := range c.path() {
			next, omitted := m.message()
			leftOut += omitted
			if next.Role != core.RoleAssistant || last.Role != core.RoleAssistant {
				flush()
				last = next
				continue
			}
			last.Content = strings.TrimSpace(last.Content + "\n\n" + next.Content)
			last.Parts = append(last.Parts, next.Parts...)
			if next.Model != "" {
				last.Model = next.Model
			}
		}
		flush()
		return historyFile{title: c.Title, data: out.Bytes(), format: core.ImportLines, leftOut: leftOut}, true
	case c.Messages != nil:
		return historyFile{title: c.Title, data: raw, format: core.ImportJSON}, true
	}
	return historyFile{}, false
}
