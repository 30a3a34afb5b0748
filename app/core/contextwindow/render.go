package contextwindow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/attach"
	"bobbin/app/core/llm"
	"bobbin/app/core/prompttext"
	"bobbin/app/core/tokens"
)

// Rendered are messages as prompts show them, which may be much shorter than their texts: a
// caller that keeps them need not keep the texts.
type Rendered map[Form]PromptMessage

// Form is a message and how a prompt shows it: of the same form, they have the same bytes.
type Form struct {
	id     core.MessageID
	place  core.Placement
	limit  int
	orphan bool
	reads  bool // see Parts.ReadsResults
	model  string
}

// formOf returns the form that the slot requires.
func (p Parts) formOf(s Slot) Form {
	return Form{id: s.ID, place: s.Place, limit: s.Limit, orphan: s.Orphan, reads: p.ReadsResults, model: p.Model.Name}
}

// Unloaded returns the slots whose messages the prompt of the decision shows and whose texts
// the parts lack: those that can be rendered one by one (Render), and those that Assemble
// needs whole, because they are quoted or have images and files. Forms are the Rendered of
// the parts that Assemble uses.
func Unloaded(parts Parts, d Decision) (render, whole []Slot, forms Rendered) {
	forms = Rendered{}
	for s := range joined(d.Pinned, d.History, d.Run) {
		m := parts.message(s.ID)
		shown := s.Place == core.PlaceVerbatim || s.Place == core.PlaceShortened
		if m.Unloaded == 0 || !shown {
			continue
		}
		rendered, ok := parts.Rendered[parts.formOf(s)]
		switch {
		case s.Note || hasFiles(m):
			whole = append(whole, s)
		case !ok:
			render = append(render, s)
		default:
			forms[parts.formOf(s)] = rendered
		}
	}
	return render, whole, forms
}

// Render returns the messages of the slots as the prompt shows them. Of the parts it uses only agent and model.
func Render(parts Parts, slots []Slot, messages map[core.MessageID]*core.Message, count core.TextCounter) Rendered {
	p := assembly{count: count, parts: parts, files: attachments{model: parts.Model}}
	forms := make(Rendered, len(slots))
	for _, s := range slots {
		forms[parts.formOf(s)] = p.renderMessage(s, *messages[s.ID])
	}
	return forms
}

// How many images and files a prompt has at most that are sent as they are, their bytes
// together, and the pages of the files. Providers take requests of 20 to 50 MB, and 100
// pages and images; base64 makes four bytes of three.
const (
	maxMedia      = 20
	maxMediaBytes = 14 << 20
	maxPages      = 80
)

// mediaKey names an image or a file of a prompt: a part of a message.
type mediaKey struct {
	message core.MessageID
	part    int
}

// attachments are the images and files of a prompt's messages.
type attachments struct {
	model llm.Info
	blobs map[core.BlobID][]byte
	texts map[core.BlobID][]byte // of documents
	shown map[mediaKey]bool      // what is sent as it is
}

// Attached returns the blobs of which Assemble needs the content for a decision, and
// those of which it needs the text that was read out of them: what Parts.Blobs and
// Parts.Documents must hold.
func Attached(parts Parts, d Decision) (contents, texts []core.BlobID) {
	shown := shownMedia(parts, d)
	add := func(ids *[]core.BlobID, id core.BlobID) {
		if id != "" && !slices.Contains(*ids, id) {
			*ids = append(*ids, id)
		}
	}
	for s := range joined(d.Pinned, d.History, d.Run) {
		if s.Place != core.PlaceVerbatim && s.Place != core.PlaceShortened {
			continue
		}
		for i, p := range parts.message(s.ID).Parts {
			switch {
			case shown[mediaKey{s.ID, i}]:
				add(&contents, p.BlobID)
			case p.Extracted:
				add(&texts, p.BlobID)
			case p.Type == core.PartFile && attach.IsText(p.MediaType):
				add(&contents, p.BlobID)
			}
		}
	}
	return contents, texts
}

// attachedPart is an image or a file of a prompt.
type attachedPart struct {
	mediaKey
	core.Part
}

// areWithin reports whether the parts are no more than the share of what a prompt may have.
func areWithin(parts []attachedPart, share int) bool {
	var bytes int64
	pages := 0
	for _, p := range parts {
		bytes, pages = bytes+p.Size, pages+p.Pages
	}
	return len(parts) <= maxMedia/share && bytes <= maxMediaBytes/int64(share) && pages <= maxPages/share
}

// shownMedia returns which images and files are sent as they are: those of messages that
// are sent whole, to a model that takes them. When they become too many, the older ones
// go until half of the room is free, so that not every new one changes the beginning of
// the prompt.
func shownMedia(parts Parts, d Decision) map[mediaKey]bool {
	var sent []attachedPart
	for s := range joined(d.History, d.Run) {
		if s.Place != core.PlaceVerbatim || s.Note {
			continue
		}
		for i, p := range parts.message(s.ID).Parts {
			if !parts.Model.Takes(p) {
				continue
			}
			if sent = append(sent, attachedPart{mediaKey{s.ID, i}, p}); areWithin(sent, 1) {
				continue
			}
			for len(sent) > 1 && !areWithin(sent, 2) {
				sent = sent[1:]
			}
		}
	}
	shown := map[mediaKey]bool{}
	for _, p := range sent {
		shown[p.mediaKey] = true
	}
	return shown
}

// renderContent returns what a message with images and files says: its content, then its files in
// their order, and the images and files that go with it as they are. Of a document that is
// not sent the text stands there; what has none is described. Nothing goes with a message
// that is not sent whole.
func (a attachments) renderContent(m core.Message, whole bool) (content string, sent []llm.Media) {
	texts := []string{m.Content}
	for i, p := range m.Parts {
		if !p.Attached() {
			continue
		}
		shown := whole && a.shown[mediaKey{m.ID, i}]
		data, stored := a.blobs[p.BlobID]
		if p.Extracted && !shown {
			data, stored = a.texts[p.BlobID]
		}
		omitted := !shown && (p.Type != core.PartFile || !p.Extracted && !attach.IsText(p.MediaType))
		switch {
		case omitted && p.Type == core.PartFile:
			texts = append(texts, attach.Instead(p, attach.NoReader))
		case omitted && !a.model.Images:
			texts = append(texts, attach.Instead(p, attach.NoSight))
		case omitted && !a.model.Takes(p):
			texts = append(texts, attach.Instead(p, attach.NotSent))
		case omitted:
			texts = append(texts, attach.Instead(p, attach.SavesSpace))
		case !stored:
			texts = append(texts, attach.Instead(p, attach.Gone))
		case shown:
			sent = append(sent, llm.Media{Part: p, Data: data})
		case p.Extracted:
			texts = append(texts, attach.Fence(p, attach.Extracted(string(data))))
		default:
			texts = append(texts, attach.Fence(p, attach.Text(data)))
		}
	}
	return core.Join("\n", texts...), sent
}

// hasFiles reports whether the message has images or files.
func hasFiles(m core.Message) bool { return slices.ContainsFunc(m.Parts, core.Part.Attached) }

// shortenMessage returns the content and the tool calls of a message within its slot's
// limit: head and tail with a marker between.
func shortenMessage(m core.Message, s Slot, count core.TextCounter) (string, []core.ToolCall) {
	calls, used := shortenedCalls(m, s, count)
	room := s.Limit - tokens.MessageOverhead - used
	if s.Orphan {
		room -= orphanWrap
	}
	if (len(calls) > 0 || hasFiles(m)) && count.Text(m.Content) <= room {
		return m.Content, calls // without calls and images the text is too long
	}
	marker := fmt.Sprintf("\n[… shortened from %d tokens; the whole text is message %s …]\n", s.asText(), m.ID)
	out := prompttext.Within(count, room, len(m.Content), func(n int) string {
		if n == 0 {
			return ""
		}
		head := core.Clip(m.Content, int(headShare*float64(n)))
		return head + marker + prompttext.Tail(m.Content, n-len(head))
	})
	return cmp.Or(out, strings.TrimSpace(marker)), calls
}

// headShare is the part of a shortened text that comes from its beginning.
const headShare = 2.0 / 3

// shortenedCalls replaces large arguments with a JSON object that says so, and returns the tokens of all calls.
func shortenedCalls(m core.Message, s Slot, count core.TextCounter) ([]core.ToolCall, int) {
	if len(m.ToolCalls) == 0 {
		return nil, 0
	}
	calls := make([]core.ToolCall, len(m.ToolCalls))
	used := 0
	each := max((s.Limit-minShortened)/len(calls), 0)
	for i, c := range m.ToolCalls {
		base, args := tokens.ToolCallOverhead+count.Text(c.Name), count.Text(c.Arguments)
		if base+args > max(each/2, shortPerCall) {
			c.Arguments = fmt.Sprintf(`{"left_out":"%d tokens, see message %s"}`, args, m.ID)
			args = count.Text(c.Arguments)
		}
		if base+args > max(each/2, shortPerCall) { // the tool's name is very long
			c.Arguments, args = "{}", 1
		}
		calls[i] = c
		used += base + args
	}
	return calls, used
}

// addAtom appends a message and, after one with tool calls, the results in their order; unmatched ones follow.
func (p *assembly) addAtom(atom []Slot) {
	head, rest := atom[0], slices.Clone(atom[1:])
	if head.Place == core.PlaceCovered {
		p.addNotes(head)
		return
	}
	p.addMessage(head, p.parts.message(head.ID))
	for _, call := range head.Calls {
		i := slices.IndexFunc(rest, func(s Slot) bool { return s.CallID == call && !s.Orphan })
		switch {
		case i >= 0:
			p.addMessage(rest[i], p.parts.message(rest[i].ID))
			rest = slices.Delete(rest, i, i+1) // two calls may have one id
		case head.Place != core.PlaceLeftOut:
			p.appendMessage(p.newMessage(llm.Message{Role: core.RoleTool, ToolCallID: call, Content: "[no result: the call was interrupted]"}))
		}
	}
	for _, s := range rest {
		p.addMessage(s, p.parts.message(s.ID))
	}
}

// separateCalls gives each tool call of a prompt an id of its own, and its result the same one:
// providers refuse a prompt with two equal ids, and some of them number the calls anew in every
// answer. The log keeps the ids as they came. The results follow their calls, as addAtom sends
// them; ids do not count as tokens.
func separateCalls(messages []PromptMessage) {
	used := map[string]bool{"": true}
	results := map[string][]string{} // ids of the latest calls without a result, by the id in the log
	for i := range messages {
		m := &messages[i]
		switch {
		case m.Role == core.RoleTool:
			if ids := results[m.ToolCallID]; len(ids) > 0 {
				results[m.ToolCallID], m.ToolCallID = ids[1:], ids[0]
			}
		case len(m.ToolCalls) > 0:
			clear(results)
			m.ToolCalls = slices.Clone(m.ToolCalls) // the message in the log has the same
			for j := range m.ToolCalls {
				c := &m.ToolCalls[j]
				id := c.ID
				for n := 2; used[id]; n++ {
					id = fmt.Sprintf("%s_%d", cmp.Or(c.ID, "call"), n)
				}
				used[id] = true
				results[c.ID] = append(results[c.ID], id)
				c.ID = id
			}
		}
	}
}
