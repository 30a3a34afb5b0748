package contextwindow

import (
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/attach"
	"bobbin/app/core/llm"
)

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
		switch why := a.omissionReason(p, shown); {
		case why != "":
			texts = append(texts, attach.Instead(p, why))
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

// omissionReason says why nothing of an image or a file is sent; empty = it is, as it is if it is
// shown, else as text.
func (a attachments) omissionReason(p core.Part, shown bool) string {
	switch {
	case shown, p.Type == core.PartFile && (p.Extracted || attach.IsText(p.MediaType)):
		return ""
	case p.Type == core.PartFile:
		return attach.NoReader
	case !a.model.Images:
		return attach.NoSight
	case !a.model.Takes(p):
		return attach.NotSent
	default:
		return attach.SavesSpace
	}
}

// hasFiles reports whether the message has images or files.
func hasFiles(m core.Message) bool { return slices.ContainsFunc(m.Parts, core.Part.Attached) }
