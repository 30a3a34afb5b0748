package contextwindow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/attach"
	cw "bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// pictures is a log of user's messages with images of those sizes in MiB, one each.
func pictures(sizes ...int64) (cw.Parts, cw.Decision) {
	parts := cw.Parts{Messages: map[core.MessageID]core.Message{}, Model: llm.Info{Images: true}, Blobs: map[core.BlobID][]byte{}}
	var d cw.Decision
	for i, size := range sizes {
		p := core.Part{Type: core.PartImage, BlobID: core.BlobID(fmt.Sprint("b", i)), MediaType: "image/png", Size: size << 20, Tokens: 300}
		m := core.Message{ID: core.MessageID(fmt.Sprint("m", i)), Seq: int64(i + 1), Role: core.RoleUser, Content: "look", Parts: []core.Part{p}}
		parts.Messages[m.ID] = m
		parts.Blobs[p.BlobID] = []byte(p.BlobID)
		d.History = append(d.History, cw.Slot{Item: cw.ItemOf(m, llm.Info{}, quarter{}), Place: core.PlaceVerbatim})
	}
	return parts, d
}

// shown returns the blobs of the images in a prompt.
func shown(p cw.Prompt) []string {
	var ids []string
	for _, m := range p.Messages {
		for _, image := range m.Media {
			ids = append(ids, string(image.Data))
		}
	}
	return ids
}

// A prompt has images within what providers take. When the older ones go, several
// go together, so that not every new image changes the prompt's beginning.
func TestImagesAreBounded(t *testing.T) {
	t.Parallel()
	changes := 0
	var before []string
	for n := 1; n <= 60; n++ {
		parts, d := pictures(slices.Repeat([]int64{1}, n)...)
		got := shown(cw.Assemble(parts, d, quarter{}))
		if len(got) == 0 || len(got) > 14 || got[len(got)-1] != fmt.Sprint("b", n-1) {
			t.Fatalf("%d images: sent are %v, want the newest, at most 14", n, got)
		}
		if len(before) > 0 && got[0] != before[0] {
			changes++
		}
		before = got
		if needed, _ := cw.Attached(parts, d); len(needed) != len(got) {
			t.Errorf("%d images: %d blobs are asked for, %d are sent", n, len(needed), len(got))
		}
	}
	if changes > 60/7+1 {
		t.Errorf("the first image changed %d times in 60 messages", changes)
	}
	parts, d := pictures(1, 20)
	if got := shown(cw.Assemble(parts, d, quarter{})); !slices.Equal(got, []string{"b1"}) {
		t.Errorf("one very large: sent are %v, want it alone", got)
	}
	small, d := pictures(slices.Repeat([]int64{0}, 30)...)
	if got := shown(cw.Assemble(small, d, quarter{})); len(got) > 20 || len(got) < 10 {
		t.Errorf("small ones: %d are sent, want 10 to 20", len(got))
	}
}

// What is not sent is described, each with its reason.
func TestImagesAreDescribed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*cw.Parts, *cw.Decision)
		why    string
	}{
		"blind model": {func(p *cw.Parts, _ *cw.Decision) { p.Model.Images = false }, attach.NoSight},
		"gif": {func(p *cw.Parts, _ *cw.Decision) {
			setPart(p, func(x *core.Part) { x.MediaType = "image/gif" })
			p.Model.Provider = "gemini"
		}, attach.NotSent},
		"too large": {func(p *cw.Parts, _ *cw.Decision) {
			setPart(p, func(x *core.Part) { x.Size = 5 << 20 })
			p.Model.Provider = "anthropic"
		}, attach.NotSent},
		"gone": {func(p *cw.Parts, _ *cw.Decision) { p.Blobs = nil }, attach.Gone},
		"pdf": {func(p *cw.Parts, _ *cw.Decision) {
			setPart(p, func(x *core.Part) { x.Type, x.MediaType = "file", "application/pdf" })
		}, attach.NoReader},
		"shortened": {func(_ *cw.Parts, d *cw.Decision) { d.History[0].Place, d.History[0].Limit = core.PlaceShortened, 200 }, attach.SavesSpace},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts, d := pictures(1)
			c.change(&parts, &d)
			p := cw.Assemble(parts, d, quarter{})
			if m := p.Messages[0]; len(m.Media) != 0 || !strings.Contains(m.Content, "look\n") || !strings.Contains(m.Content, c.why) {
				t.Errorf("got %q with %d images, want %q", m.Content, len(m.Media), c.why)
			}
			if diff := cmp.Diff(p, cw.Assemble(parts, d, quarter{})); diff != "" { // invariant 7
				t.Errorf("the same decision gives other bytes:\n%s", diff)
			}
		})
	}
}

func setPart(p *cw.Parts, change func(*core.Part)) {
	m := p.Messages["m0"]
	part := m.Parts[0]
	change(&part)
	m.Parts = []core.Part{part}
	p.Messages["m0"] = m
}

// Pinned messages that are quoted as notes say what they have.
func TestPinnedFilesAreTold(t *testing.T) {
	t.Parallel()
	parts, d := pictures(1)
	d.Pinned, d.History = d.History, nil
	setPart(&parts, func(x *core.Part) { x.Type, x.MediaType, x.Name = core.PartFile, "text/plain", "a.txt" })
	parts.Blobs["b0"] = []byte("the text</pinned>")
	parts.SystemPrompt = "x"
	got := strings.Join(cw.Assemble(parts, d, quarter{}).System, "\n")
	if !strings.Contains(got, `[file "a.txt", text/plain`) || !strings.Contains(got, "the text[/pinned>") {
		t.Errorf("got %q, want the file's text, fenced", got)
	}
	if ids, _ := cw.Attached(parts, d); !slices.Equal(ids, []core.BlobID{"b0"}) {
		t.Errorf("got the blobs %v, want b0", ids)
	}
}

// The text that was read out of a document is sent, and not its content; of one that is
// not read any more a line says so.
func TestDocumentsAreSentAsText(t *testing.T) {
	t.Parallel()
	parts, d := pictures(1)
	setPart(&parts, func(x *core.Part) {
		x.Type, x.MediaType, x.Name, x.Pages, x.Extracted = core.PartFile, attach.PDF, "a.pdf", 2, true
	})
	contents, texts := cw.Attached(parts, d)
	if len(contents) != 0 || !slices.Equal(texts, []core.BlobID{"b0"}) {
		t.Errorf("got the contents %v and the texts %v, want the text of b0", contents, texts)
	}
	for want, documents := range map[string]map[core.BlobID][]byte{
		"<attached_file>\n[page 1]\nhello [/attached_file>\n</attached_file>": {"b0": []byte("[page 1]\nhello </attached_file>")},
		"2 pages, 1.0 MB: it is not stored any more]":                         nil,
	} {
		parts.Documents = documents
		if got := cw.Assemble(parts, d, quarter{}).Messages[0].Content; !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
