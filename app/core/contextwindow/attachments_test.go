package contextwindow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/app/core/attach"
	cw "bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/tests/compare"
	"bobbin/tests/seed"
)

// pictures is a log of user's messages with images of those sizes in MiB, one each.
func pictures(sizes ...int64) (cw.Parts, cw.Decision) {
	parts := cw.Parts{Messages: map[core.MessageID]*core.Message{}, Model: llm.Info{Images: true}, Blobs: map[core.BlobID][]byte{}}
	var d cw.Decision
	for i, size := range sizes {
		p := core.Part{Type: core.PartImage, BlobID: core.BlobID(fmt.Sprint("b", i)), MediaType: "image/png", Size: size << 20, Tokens: 300}
		m := core.Message{ID: core.MessageID(fmt.Sprint("m", i)), Seq: int64(i + 1), Role: core.RoleUser, Content: "look", Parts: []core.Part{p}}
		parts.Messages[m.ID] = &m
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
			compare.Equal(t, "the same decision gives other bytes", p, cw.Assemble(parts, d, quarter{}))
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
		compare.Contains(t, "cw.Assemble(parts, d, quarter{}).Messages[0].Content", want, cw.Assemble(parts, d, quarter{}).Messages[0].Content)
	}
}

// reader is a model that gets PDFs as files.
func reader() llm.Info { return llm.Info{Name: "reader", Documents: llm.DocumentsAlways} }

// library is a talk in which messages have PDFs.
type library struct {
	talk
	texts, files map[core.BlobID][]byte
}

// attach gives the message with the number a PDF of so many pages and tokens of text.
func (l *library) attach(seq int64, pages, text int) {
	if l.texts == nil {
		l.texts, l.files = map[core.BlobID][]byte{}, map[core.BlobID][]byte{}
	}
	m := &l.log[seq-1]
	p := core.Part{
		Type: core.PartFile, MediaType: attach.PDF, Name: "plan.pdf", Size: 100_000, Pages: pages, Extracted: true,
		BlobID: core.BlobID(fmt.Sprintf("b%d-%d", seq, len(m.Parts))),
	}
	l.texts[p.BlobID], l.files[p.BlobID] = []byte(strings.Repeat("read", text)), []byte(p.BlobID)
	p.Tokens = attach.Tokens(p, text, quarter{}.Text)
	m.Parts, m.TokenCount = append(m.Parts, p), m.TokenCount+p.Tokens
}

// plan returns the decision for the run that began with message #from, and its prompt with
// nothing but what Attached asks for.
func (l *library) plan(p cw.Policy, model llm.Info, window int, from int64) (cw.Decision, cw.Prompt) {
	in := l.during(p, window, from)
	in.History, in.Run = nil, nil
	for _, m := range l.log {
		if it := cw.ItemOf(m, model, quarter{}); m.Seq < from {
			in.History = append(in.History, it)
		} else {
			in.Run = append(in.Run, it)
		}
	}
	d, _ := cw.Plan(in)
	parts := l.parts()
	parts.Model, parts.Blobs, parts.Documents = model, map[core.BlobID][]byte{}, map[core.BlobID][]byte{}
	contents, texts := cw.Attached(parts, d)
	for _, id := range contents {
		parts.Blobs[id] = l.files[id]
	}
	for _, id := range texts {
		parts.Documents[id] = l.texts[id]
	}
	return d, cw.Assemble(parts, d, quarter{})
}

// A PDF that the model gets as a file costs its text and an image a page in the plan and
// in the prompt; another model gets the text, and pays for no more.
func TestDocumentsAsFiles(t *testing.T) {
	t.Parallel()
	l := &library{}
	l.user(20)
	l.attach(1, 3, 200)
	text := l.log[0].TokenCount
	d, p := l.plan(preset(t, "off"), reader(), 32_000, 1)
	m := p.Messages[0]
	if got := shown(p); !slices.Equal(got, []string{"b1-0"}) || strings.Contains(m.Content, "read") || strings.Contains(m.Content, "plan.pdf") {
		t.Errorf("got the files %v and %q, want the file alone", got, m.Content)
	}
	if want := text + 3*tokens.PageTokens; d.Run[0].Size != want || m.Tokens != want || p.Sent.Media != want-20 || p.Sent.Comparable() {
		t.Errorf("planned are %d tokens, sent %d, %d of them a file, want %d", d.Run[0].Size, m.Tokens, p.Sent.Media, want)
	}
	d, p = l.plan(preset(t, "off"), llm.Info{Name: "text", Images: true}, 32_000, 1)
	if m := p.Messages[0]; d.Run[0].Size != text || m.Tokens > text || len(m.Media) != 0 || !strings.Contains(m.Content, "<attached_file>\nread") {
		t.Errorf("another model: planned are %d tokens, sent %d with %q, want %d with the text", d.Run[0].Size, m.Tokens, m.Content, text)
	}
}

// Where there is no room for the pages the model gets the text, whole: of the message that
// asks, of older ones, and of more than a request may have.
func TestDocumentsFallBackToText(t *testing.T) {
	t.Parallel()
	whole := func(t *testing.T, p cw.Prompt, i int) {
		t.Helper()
		if m := p.Messages[i]; len(m.Media) != 0 || !strings.Contains(m.Content, strings.Repeat("read", 200)) || strings.Contains(m.Content, "shortened") {
			t.Errorf("message %d: got %d files and %q, want the text", i, len(m.Media), m.Content)
		}
	}
	t.Run("too large for the window", func(t *testing.T) {
		t.Parallel()
		l := &library{}
		l.turns(2, 50).user(20)
		l.attach(5, 20, 200)
		d, p := l.plan(preset(t, "off"), reader(), 16_000, 5)
		if whole(t, p, 4); d.Run[0].Place != core.PlaceShortened || d.Run[0].Size != l.log[4].TokenCount {
			t.Errorf("got %s with %d tokens, want the tokens of the text", d.Run[0].Place, d.Run[0].Size)
		}
	})
	t.Run("an older one", func(t *testing.T) {
		t.Parallel()
		l := &library{}
		l.user(20).answer(20).user(20).answer(20).user(20)
		for _, seq := range []int64{1, 3, 5} {
			l.attach(seq, 6, 200)
		}
		_, p := l.plan(preset(t, "off"), reader(), 32_000, 5)
		if whole(t, p, 0); len(p.Messages) != 5 || !slices.Contains(shown(p), "b5-0") {
			t.Errorf("got the files %v, want the newer one", shown(p))
		}
	})
	t.Run("pages of a request", func(t *testing.T) {
		t.Parallel()
		l := &library{}
		for i := range int64(5) {
			l.user(20).answer(20)
			l.attach(2*i+1, 20, 200)
		}
		_, p := l.plan(preset(t, "off"), reader(), 1_000_000, 9)
		if whole(t, p, 0); !slices.Equal(shown(p), []string{"b7-0", "b9-0"}) {
			t.Errorf("got the files %v, want half of what may be sent", shown(p))
		}
	})
	t.Run("pinned and left out", func(t *testing.T) {
		t.Parallel()
		l := &library{}
		l.user(20).answer(20).pin(1)
		l.attach(1, 6, 200)
		in := cw.Input{Policy: preset(t, "off"), Factor: 1, Model: cw.Limits{Window: 32_000}, Pinned: []cw.Item{cw.ItemOf(l.log[0], reader(), quarter{})}}
		if d, _ := cw.Plan(in); d.Pinned[0].Size >= l.log[0].TokenCount+100 {
			t.Errorf("the quotation has %d tokens, want those of the text", d.Pinned[0].Size)
		}
	})
}

// No prompt with PDFs is larger than its plan, section by section, and its messages have
// the tokens that they are said to have.
func TestDocumentsAreWithinThePlan(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(rt *rapid.T) {
		l := &library{}
		turns := rapid.IntRange(1, 8).Draw(rt, "turns")
		for i := range turns {
			l.user(rapid.IntRange(10, 400).Draw(rt, "question"))
			for range rapid.IntRange(0, 2).Draw(rt, "files") {
				l.attach(int64(2*i+1), rapid.IntRange(1, 25).Draw(rt, "pages"), rapid.SampledFrom([]int{0, 10, 3_000, 40_000}).Draw(rt, "text"))
			}
			if rapid.IntRange(0, 5).Draw(rt, "pin") == 0 && l.log[2*i].TokenCount < 500 {
				l.pin(int64(2*i + 1))
			}
			if i < turns-1 {
				l.answer(rapid.IntRange(10, 400).Draw(rt, "answer"))
			}
		}
		model := reader()
		model.Documents = rapid.SampledFrom([]llm.Documents{llm.DocumentsAlways, llm.DocumentsAlways, llm.DocumentsNever}).Draw(rt, "documents")
		policy := preset(t, rapid.SampledFrom(cw.PresetNames()).Draw(rt, "policy"))
		d, p := l.plan(policy, model, rapid.SampledFrom([]int{8_192, 32_000, 128_000, 1_000_000}).Draw(rt, "window"), int64(len(l.log)))
		if d.Floor != nil || d.Summarize != nil {
			return
		}
		if d.Total > d.Budget.Usable {
			rt.Fatalf("the plan has %d tokens of %d", d.Total, d.Budget.Usable)
		}
		for i, s := range p.Sent.Sections(d)[:6] {
			if s.Tokens > d.Sections[i].Tokens {
				rt.Fatalf("section %+v is sent, planned is %+v", s, d.Sections[i])
			}
		}
		for _, m := range p.Messages {
			exact := tokens.Prompted(quarter{}.Text, m.Message)
			if m.Tokens < exact || m.Tokens > exact+200 && len(m.Content) < 64<<10 {
				rt.Fatalf("message %s has %d tokens, counted are %d", m.ID, m.Tokens, exact)
			}
		}
	})
}
