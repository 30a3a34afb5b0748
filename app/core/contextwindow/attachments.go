package contextwindow

import (
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/attach"
	"bobbin/app/core/llm"
)

// How many images a prompt has at most, and their bytes together. Providers take
// requests of 20 to 50 MB; base64 makes four bytes of three.
const (
	maxImages     = 20
	maxImageBytes = 14 << 20
)

// imageKey names an image of a prompt: a part of a message.
type imageKey struct {
	message core.MessageID
	part    int
}

// attachments are the images and files of a prompt's messages.
type attachments struct {
	model llm.Info
	blobs map[core.BlobID][]byte
	shown map[imageKey]bool // the images that are sent
}

// Attached returns the blobs of which Assemble needs the content for a decision:
// what Parts.Blobs must hold.
func Attached(parts Parts, d Decision) []core.BlobID {
	shown := shownImages(parts, d)
	var ids []core.BlobID
	for _, s := range slices.Concat(d.Pinned, d.History, d.Run) {
		if s.Place != core.PlaceVerbatim && s.Place != core.PlaceShortened {
			continue
		}
		for i, p := range parts.Messages[s.ID].Parts {
			needed := p.Type == core.PartFile && attach.IsText(p.MediaType) || shown[imageKey{s.ID, i}]
			if needed && p.BlobID != "" && !slices.Contains(ids, p.BlobID) {
				ids = append(ids, p.BlobID)
			}
		}
	}
	return ids
}

// shownImages returns which images are sent: those of messages that are sent as
// they are, to a model that takes them. When they become too many, the older ones
// go until half of the room is free, so that not every new image changes the
// beginning of the prompt.
func shownImages(parts Parts, d Decision) map[imageKey]bool {
	type image struct {
		key  imageKey
		size int64
	}
	var window []image
	size := int64(0)
	for _, s := range slices.Concat(d.History, d.Run) {
		if s.Place != core.PlaceVerbatim || s.Note {
			continue
		}
		for i, p := range parts.Messages[s.ID].Parts {
			if !parts.Model.Takes(p) {
				continue
			}
			window, size = append(window, image{imageKey{s.ID, i}, p.Size}), size+p.Size
			if len(window) <= maxImages && size <= maxImageBytes {
				continue
			}
			for len(window) > 1 && (len(window) > maxImages/2 || size > maxImageBytes/2) {
				size -= window[0].size
				window = window[1:]
			}
		}
	}
	shown := map[imageKey]bool{}
	for _, i := range window {
		shown[i.key] = true
	}
	return shown
}

// tell returns what a message with images and files says: its content, then its
// files in their order, and the images that go with it. What is not sent is
// described. Without images (whole is false) these are described too.
func (a attachments) tell(m core.Message, whole bool) (content string, images []llm.Image) {
	texts := []string{m.Content}
	for i, p := range m.Parts {
		if !p.Attached() {
			continue
		}
		data, stored := a.blobs[p.BlobID]
		switch why := a.instead(p, imageKey{m.ID, i}, whole); {
		case why != "":
			texts = append(texts, attach.Instead(p, why))
		case !stored:
			texts = append(texts, attach.Instead(p, attach.Gone))
		case p.Type == core.PartImage:
			images = append(images, llm.Image{Part: p, Data: data})
		default:
			texts = append(texts, attach.Fence(p, attach.Text(data)))
		}
	}
	return attach.Join(texts...), images
}

// instead says why an image or a file is not sent; empty = it is.
func (a attachments) instead(p core.Part, key imageKey, whole bool) string {
	switch {
	case p.Type == core.PartFile && attach.IsText(p.MediaType):
		return ""
	case p.Type == core.PartFile:
		return attach.NoReader
	case !a.model.Images:
		return attach.NoSight
	case !a.model.Takes(p):
		return attach.NotSent
	case !whole || !a.shown[key]:
		return attach.SavesSpace
	default:
		return ""
	}
}

// hasFiles reports whether the message has images or files.
func hasFiles(m core.Message) bool { return slices.ContainsFunc(m.Parts, core.Part.Attached) }

// told returns the messages with what their images and files say in their content.
func (a attachments) told(messages map[core.MessageID]core.Message, slots []Slot) map[core.MessageID]core.Message {
	out := make(map[core.MessageID]core.Message, len(slots))
	for _, s := range slots {
		m := messages[s.ID]
		if hasFiles(m) {
			m.Content, _ = a.tell(m, false)
		}
		out[s.ID] = m
	}
	return out
}

// withoutFiles returns the parts that are neither images nor files.
func withoutFiles(parts []core.Part) []core.Part {
	return slices.DeleteFunc(slices.Clone(parts), core.Part.Attached)
}
