package contextwindow_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/seed"
)

// What is shown is what is sent, and no section of it is more than
// was planned: over thousands of conversations, whatever the ladder did to them.
func TestSentIsWithinThePlan(t *testing.T) {
	every(t, func(rt *rapid.T, sh shot) {
		d, sent := sh.d, sh.prompt.Sent
		if sent.Of[cw.SectionTools] == 0 { // the simulation has no definitions, only their size
			sent.Of[cw.SectionTools] = sh.in.Tools
		}
		shown := sent.Sections(d)
		parts := len(shown) - 2 // reserve and free come last
		for i, s := range shown[:parts] {
			if planned := d.Sections[i]; s.Name != planned.Name || s.Tokens > planned.Tokens || s.Messages != planned.Messages {
				rt.Fatalf("section %+v is shown, planned is %+v", s, planned)
			}
		}
		used, messages, ofMessages := 0, 0, 0
		for i, s := range shown[:parts] {
			used += s.Tokens
			if i >= 4 { // after system, tools, summary and pinned
				ofMessages += s.Tokens
			}
		}
		for _, m := range sh.prompt.Messages {
			messages += m.Tokens
		}
		together := 0
		for _, n := range sh.prompt.Shown(d) {
			together += n
		}
		if together != ofMessages {
			rt.Fatalf("the messages have %d tokens together, their sections %+v", together, shown[4:parts])
		}
		if used != sent.Used(d) || used > d.Total || messages != sent.Of[cw.SectionStanding]+sent.Of[cw.SectionTail]+sent.Of[cw.SectionRecalled]+sent.Of[cw.SectionRun] {
			rt.Fatalf("the sections have %d tokens, used are %d, planned %d; the messages have %d of %d", used, sent.Used(d), d.Total, messages, sent.Of[cw.SectionStanding]+sent.Of[cw.SectionTail]+sent.Of[cw.SectionRecalled]+sent.Of[cw.SectionRun])
		}
		if reserve, free := shown[parts].Tokens, shown[parts+1].Tokens; reserve+free+used != d.Budget.Window {
			rt.Fatalf("used %d, reserve %d and free %d are not the window, %d", used, reserve, free, d.Budget.Window)
		}
		size := 0
		for _, m := range sh.prompt.Messages {
			size += 4 + quarter{}.Text(m.Content)
			for _, c := range m.ToolCalls {
				size += 8 + quarter{}.Text(c.Name) + quarter{}.Text(c.Arguments)
			}
		}
		named := 0 // line and text are counted apart
		for _, m := range sh.s.log {
			if m.Named {
				named++
			}
		}
		if size > messages || size < messages-named {
			rt.Fatalf("the messages have %d tokens, counted are %d", size, messages)
		}
	})
}

// Images that are a small part of a prompt do not keep its count from
// teaching anything; more of them do, unless they are only described.
func TestSentImages(t *testing.T) {
	t.Parallel()
	parts, d := pictures(1)
	for _, c := range []struct {
		name string
		text int // tokens of the message besides
		want bool
	}{{"most of it is an image", 100, false}, {"hardly any of it is", 10_000, true}} {
		m := *parts.Messages["m0"]
		m.Content = strings.Repeat("word", c.text)
		parts.Messages["m0"] = &m
		sent := cw.Assemble(parts, d, quarter{}).Sent
		if got := sent.Comparable(); got != c.want || sent.Media == 0 {
			t.Errorf("%s: comparable %v with %d tokens of images in %d, want %v", c.name, got, sent.Media, sent.Total(), c.want)
		}
	}
	m := *parts.Messages["m0"]
	m.Content = "look"
	parts.Messages["m0"] = &m
	parts.Model.Images = false // described instead
	if sent := cw.Assemble(parts, d, quarter{}).Sent; !sent.Comparable() || sent.Media != 0 || sent.Of[cw.SectionTail] > 60 {
		t.Errorf("described: got %+v, want the words alone", sent)
	}
}

// A file of a megabyte is not counted again for each prompt.
func TestSentCountsLargeFilesOnce(t *testing.T) {
	t.Parallel()
	parts, d := pictures(1)
	setPart(&parts, func(x *core.Part) { x.Type, x.MediaType, x.Name = core.PartFile, "text/plain", "a.txt" })
	parts.Blobs["b0"] = []byte(strings.Repeat("line\n", 200_000))
	d.History[0].Tokens = 250_123
	parts.SystemPrompt = "You are a reader."
	seen := &recorder{}
	compare.Equal(t, "tokens: want those that were counted when the file came", 250_123, cw.Assemble(parts, d, seen).Sent.Of[cw.SectionTail])
	if longest := slices.Max(seen.sizes); longest > 100_000 {
		t.Errorf("a text of %d bytes was counted", longest)
	}
}

// recorder is quarter, and remembers how long the texts were.
type recorder struct{ sizes []int }

func (r *recorder) Text(s string) int {
	r.sizes = append(r.sizes, len(s))
	return quarter{}.Text(s)
}

// withoutTexts returns the parts as they are when the texts of some messages were left
// in storage.
func withoutTexts(parts cw.Parts, left func(core.Message) bool) cw.Parts {
	messages := map[core.MessageID]*core.Message{}
	for id, m := range parts.Messages {
		if left(*m) {
			m = new(m.WithoutTexts())
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

// thoughtsOf returns the thoughts that are sent with a message.
func thoughtsOf(m cw.PromptMessage) []core.Part {
	return slices.DeleteFunc(slices.Clone(m.Parts), func(p core.Part) bool { return p.Type != core.PartReasoning })
}

// Invariant 7: no thought is sent behind another prompt than the one that it was produced behind,
// and every thought is sent until a compaction, a pin or another model changes the prompt.
// Invariant 1: what is sent, thoughts included, is not larger than planned.
func TestInvariant7ThoughtsBehindTheirPrompt(t *testing.T) {
	t.Parallel()
	kept, frozen, behind := 0, 0, map[llm.ToolChanges]int{}
	seed.Check(t, func(rt *rapid.T) {
		simulateThoughts(rt, func(sh shot) {
			if sh.d.Floor != nil {
				return
			}
			n, size := 0, 0
			added := false
			for i, m := range sh.prompt.Messages {
				added = added || len(m.AddedTools) > 0
				if len(thoughtsOf(m)) == 0 {
					continue
				}
				n++
				for _, p := range thoughtsOf(m) {
					size += p.Tokens
				}
				if added {
					behind[sh.d.ToolChanges]++
				}
				if got := serialize(sh.prompt, i); got != sh.s.producer[m.ID] {
					rt.Fatalf("the thought of message %s is behind another prompt:\n%s\nwant\n%s", m.ID, got, sh.s.producer[m.ID])
				}
			}
			if n != sh.prompt.Sent.Thoughts.Kept {
				rt.Fatalf("%d thoughts are sent, %d are counted", n, sh.prompt.Sent.Thoughts.Kept)
			}
			if got := rendered(sh) + int(sh.in.Factor*float64(size)); got > sh.d.Total || sh.d.Total > sh.d.Budget.Usable || sh.prompt.Sent.Used(sh.d) > sh.d.Total {
				rt.Fatalf("the prompt has %d tokens with %d of thoughts, sent are %d, planned %d, usable %d", got, size, sh.prompt.Sent.Used(sh.d), sh.d.Total, sh.d.Budget.Usable)
			}
			kept += n
			if sh.d.Frozen != "" {
				frozen += n
			}
		})
	})
	if kept == 0 || frozen == 0 || behind[llm.ToolsAdded] == 0 || behind[llm.ToolsChangeable] == 0 {
		t.Errorf("%d thoughts were sent, %d of them behind an earlier system prompt, %v behind added tools, want some", kept, frozen, behind)
	}
}

// A plain conversation keeps all thoughts, tool calls or not, and a compaction drops those behind
// its first change only.
func TestThoughtsUntilACompaction(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*agentTalk)
		want   cw.ThoughtCount
	}{
		"unchanged": {func(*agentTalk) {}, cw.ThoughtCount{Kept: 2}},
		"left out": {func(a *agentTalk) {
			a.state.ThoughtsDropped = []cw.SeqRange{{From: 3, Through: 4}}
		}, cw.ThoughtCount{Kept: 1, Compacted: 1}},
		"an edit":          {func(a *agentTalk) { a.log[2].Content = "3" }, cw.ThoughtCount{Kept: 1, Changed: 1}},
		"an early edit":    {func(a *agentTalk) { a.log[0].Content = "1" }, cw.ThoughtCount{Changed: 2}},
		"another model":    {func(a *agentTalk) { a.model.ThoughtOrigin = "anthropic/n" }, cw.ThoughtCount{OtherModel: 2}},
		"another account":  {func(a *agentTalk) { a.model.Account = "other" }, cw.ThoughtCount{Changed: 2}},
		"imported":         {func(a *agentTalk) { a.log[1].Parts[0].Prefix = "" }, cw.ThoughtCount{Unbound: 1, Changed: 1}},
		"a free model":     {func(a *agentTalk) { a.model.Prefix = llm.PrefixFree }, cw.ThoughtCount{}},
		"an unknown model": {func(a *agentTalk) { a.model.Prefix = "" }, cw.ThoughtCount{}},
	} {
		a := newAgentTalk(t)
		a.talk("A a", "A a", "A a")
		tt.change(a)
		_, p := a.prompt("A a")
		sent := 0
		for _, m := range p.Messages {
			sent += len(thoughtsOf(m))
		}
		compare.Equal(t, name+": thoughts, sent", []any{tt.want, tt.want.Kept}, []any{p.Sent.Thoughts, sent})
	}
}
