package contextwindow_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// withoutTexts returns the parts as they are when the texts of some messages were left
// in storage.
func withoutTexts(parts cw.Parts, left func(core.Message) bool) cw.Parts {
	messages := map[core.MessageID]core.Message{}
	for id, m := range parts.Messages {
		if left(m) {
			m = m.WithoutTexts()
		}
		messages[id] = m
	}
	parts.Messages = messages
	return parts
}

// completed gives the parts what Unloaded says that they lack, and returns how many
// messages that took.
func completed(parts *cw.Parts, d cw.Decision, whole cw.Parts) int {
	render, quoted, _ := cw.Unloaded(*parts, d)
	parts.Rendered = cw.Render(*parts, render, whole.Messages, quarter{})
	for _, s := range quoted {
		parts.Messages[s.ID] = whole.Messages[s.ID]
	}
	return len(render) + len(quoted)
}

// A prompt has the same bytes and the same numbers, whichever of its messages came
// without their texts.
func TestPromptOfMessagesWithoutTexts(t *testing.T) {
	every(t, func(rt *rapid.T, sh shot) {
		whole := sh.s.parts()
		through := rapid.Int64Range(0, int64(len(sh.s.log))).Draw(rt, "without texts through")
		parts := withoutTexts(whole, func(m core.Message) bool { return m.Seq <= through })
		completed(&parts, sh.d, whole)
		if diff := cmp.Diff(sh.prompt, cw.Assemble(parts, sh.d, quarter{})); diff != "" {
			rt.Fatalf("prompt with the texts of all messages (-), without those up to #%d (+):\n%s", through, diff)
		}
		// What was rendered for this prompt is not loaded for the next one.
		render, quoted, again := cw.Unloaded(parts, sh.d)
		if len(render)+len(quoted) > 0 || len(again) != len(parts.Rendered) {
			rt.Fatalf("%d and %d messages are loaded again, %d of %d are known", len(render), len(quoted), len(again), len(parts.Rendered))
		}
	})
}

// The same of what the random conversations do not have: large tool results of which
// prompts show an excerpt, images and files, and pinned messages that are quoted.
func TestUnloadedMessagesOfAllKinds(t *testing.T) {
	t.Parallel()
	c := new(talk).turns(1, 50).round(400, 30).turns(1, 60)
	c.pin(1)
	c.log[3] = core.WithExcerpt(c.log[3], 600)
	c.log[5].Parts = []core.Part{
		{Type: core.PartImage, BlobID: "b1", MediaType: "image/png", Size: 1 << 20, Tokens: 300},
		{Type: core.PartFile, BlobID: "b2", MediaType: "text/plain", Name: "a.txt", Size: 30, Tokens: 10},
	}
	c.log[6].Parts = []core.Part{{Type: "reasoning", Text: "well", Signature: strings.Repeat("s", 100), Origin: "scripted/m"}}
	whole := c.parts()
	whole.Model = llm.Info{Name: "m", Provider: "scripted", Images: true}
	whole.Blobs = map[core.BlobID][]byte{"b1": []byte("png"), "b2": []byte("what the file says")}

	var d cw.Decision
	for i, it := range c.items(1) {
		s := cw.Slot{Item: it, Place: core.PlaceVerbatim}
		switch i {
		case 0:
			s.Place, s.Note = core.PlaceLeftOut, true
			d.Pinned = []cw.Slot{{Item: it, Place: core.PlaceVerbatim, Note: true}}
		case 1:
			s.Place, s.Limit = core.PlaceShortened, 30
		case 4:
			s.Place = core.PlaceMasked
		}
		d.History = append(d.History, s)
	}
	for name, reads := range map[string]bool{"the agent reads results": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := whole
			whole.ReadsResults = reads
			parts := withoutTexts(whole, func(core.Message) bool { return true })
			if n := completed(&parts, d, whole); n != 6 { // of 7; the one that is masked is not needed
				t.Errorf("%d messages are loaded, want 6", n)
			}
			if diff := cmp.Diff(cw.Assemble(whole, d, quarter{}), cw.Assemble(parts, d, quarter{})); diff != "" {
				t.Errorf("prompt (-with, +without texts):\n%s", diff)
			}
		})
	}
}

// A prompt that is too large to be sent is shown without the texts that are not loaded;
// its numbers are those of the whole messages.
func TestUnloadedMessagesAreCounted(t *testing.T) {
	t.Parallel()
	c := new(talk).turns(3, 100).pin(1)
	d, _ := cw.Plan(c.between(preset(t, "window"), 8_192))
	d.Pinned, d.History[0].Note, d.History[0].Place = []cw.Slot{d.History[0]}, true, core.PlaceLeftOut
	want := c.prompt(d)
	got := cw.Assemble(withoutTexts(c.parts(), func(m core.Message) bool { return m.Seq < 5 }), d, quarter{})
	if got.Sent.Of[cw.SectionTail] != want.Sent.Of[cw.SectionTail] || got.Sent.Of[cw.SectionPinned] < want.Sent.Of[cw.SectionPinned] {
		t.Errorf("got %+v, want the numbers of %+v", got.Sent, want.Sent)
	}
	for i, m := range got.Messages {
		content := want.Messages[i].Content
		if m.ID != "" && m.ID < c.log[4].ID {
			content = "[not shown here, as this prompt is too large to be sent; the whole text is in the conversation]"
		}
		if m.Content != content {
			t.Errorf("message %d: got %q, want %q", i, m.Content, content)
		}
	}
	if block := strings.Join(got.System, "\n"); !strings.Contains(block, "not shown") {
		t.Errorf("got %q, want that the pinned message is not shown", block)
	}
}
