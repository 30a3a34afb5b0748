package contextwindow_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/tests/compare"
	"bobbin/tests/seed"
)

// textCounter is what Assemble counts with.
type textCounter interface{ Text(s string) int }

// perRune and perWord are rulers that no text can be guessed by.
type (
	perRune struct{}
	perWord struct{}
)

func (perRune) Text(s string) int { return utf8.RuneCountInString(s) }
func (perWord) Text(s string) int { return len(strings.Fields(s)) }

func cl100k(t testing.TB) *tokens.Counter {
	t.Helper()
	c := tokens.NewCounter()
	return c
}

// worstID is the UUIDv7 that costs the most tokens: no two of its digits merge.
const worstID = "0a1b2c3d-4e5f-7a6b-8c9d-0e1f2a3b4c%02d"

// hostile are contents in which nothing compresses, or everything does.
func hostile() map[string]string {
	return map[string]string{
		"words":   strings.Repeat("The quick brown fox jumps over the lazy dog. ", 400),
		"letters": strings.Repeat("x", 20_000),
		"spaces":  strings.Repeat(" ", 20_000),
		"chinese": strings.Repeat("統一碼長文", 2_000),
		"emoji":   strings.Repeat("👩‍👩‍👧‍👦", 800),
		"hex":     strings.Repeat("0a1b2c3d4e5f", 1_500),
		"lines":   strings.Repeat("\n", 5_000),
		"mixed":   strings.Repeat("x", 9_000) + strings.Repeat("統", 2_000) + strings.Repeat(" ", 9_000),
		"broken":  strings.Repeat("\xff\x80", 5_000),
	}
}

// Invariant 1: every fixed text of a prompt costs at most what
// input.go says, counted as the product counts, with the costliest ids.
func TestConstantsHoldForTheRealCounter(t *testing.T) {
	t.Parallel()
	count := cl100k(t)
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := hostileTalk(text, count)
			in := c.during(preset(t, "off"), 1_000_000, 14)
			in.Pinned, in.History = in.History[:2], in.History[2:]
			in.Summary = core.SummaryVersion{Version: 1, ThroughSeq: c.log[1].Seq, Tokens: count.Text(text)}
			in.State = cw.PromptState{MaskedThrough: c.log[9].Seq, Shortened: map[core.MessageID]int{}, SummaryCut: 100}
			for i := range 4 { // every other one of the first messages
				in.State.LeftOut = append(in.State.LeftOut, cw.SeqRange{From: c.log[2*i].Seq, Through: c.log[2*i].Seq})
			}
			for _, m := range c.log[10:] {
				in.State.Shortened[m.ID] = 96 + 80*len(m.ToolCalls)
			}
			parts := c.parts()
			parts.Summary = text
			in.System = cw.SystemTokens(parts, count)
			d, _ := cw.Plan(in)
			p := cw.Assemble(parts, d, count)
			withinSlots(t, d, p, count)
			withinSections(t, d, p, count)
		})
	}
}

// hostileTalk is a conversation with all forms that a message can have.
func hostileTalk(text string, count textCounter) *talk {
	c := new(talk)
	c.turns(3, 30).answer(30).answer(30)
	c.round(30, 30)                                                                                // 9 to 11: masked results
	c.log[10].ToolCallID = "nobody"                                                                // 11: an orphan; the second call is without a result
	c.turns(1, 30).user(30).round(30).round(30).answer(30).add(core.RoleTool, 30).ToolCallID = "x" // 14 on: the run
	for i := range c.log {
		m := &c.log[i]
		m.ID, m.Seq = core.MessageID(fmt.Sprintf(worstID, i)), int64(12_345_600+i)
		m.Pinned = i < 2
		m.Content = text
		for j := range m.ToolCalls {
			m.ToolCalls[j].Name = []string{"mcp__some_server__read_the_file_with_lines", strings.Repeat("0a1b", 16)}[i/2%2]
			m.ToolCalls[j].Arguments = `{"text":"` + strings.Repeat("0a1b2c3d", 400) + `"}`
		}
		m.TokenCount = costs(core.Message{Content: text, ToolCalls: m.ToolCalls}, count)
	}
	return c
}

// costs returns what a message costs (B8).
func costs(m core.Message, count textCounter) int {
	n := 4 + count.Text(m.Content)
	for _, call := range m.ToolCalls {
		n += 8 + count.Text(call.Name) + count.Text(call.Arguments)
	}
	return n
}

// withinSlots fails if a message of the prompt costs more than its slot.
func withinSlots(t testing.TB, d cw.Decision, p cw.Prompt, count textCounter) {
	t.Helper()
	size := map[core.MessageID]cw.Slot{}
	for _, slots := range [][]cw.Slot{d.History, d.Run} {
		for _, s := range slots {
			size[s.ID] = s
		}
	}
	seen := map[core.Placement]bool{}
	for _, m := range p.Messages {
		s, got := size[m.ID], costs(core.Message{Content: m.Content, ToolCalls: m.ToolCalls}, count)
		most := s.Size - 32*s.Missing
		switch {
		case m.ID == "" && m.Role == core.RoleTool:
			most = 32
		case m.ID == "":
			most = 24
		}
		if got > most {
			t.Errorf("#%d, %s, orphan %v, %d calls: %d tokens, planned %d: %q", s.Seq, m.Place, s.Orphan, len(m.ToolCalls), got, most, m.Content)
		}
		seen[m.Place] = true
	}
	compare.Equal(t, "places: want verbatim, masked and shortened", 3, len(seen))
}

// withinSections fails if the system blocks cost more than their sections.
func withinSections(t testing.TB, d cw.Decision, p cw.Prompt, count textCounter) {
	t.Helper()
	most := 0
	for _, s := range d.Sections {
		if s.Name == "system" || s.Name == "summary" || s.Name == "pinned" {
			most += s.Tokens
		}
	}
	got := cw.ListOverhead + count.Text(strings.Join(p.System, "\n\n"))
	if len(p.System) != 4 || got > most {
		t.Errorf("%d system blocks cost %d tokens, planned %d", len(p.System), got, most)
	}
}

// Rung 6: head and tail are in at most the limit, of whole characters,
// from the text's own beginning and end, for any text and counter.
func TestShortenedProperty(t *testing.T) {
	t.Parallel()
	counters := map[string]textCounter{"quarter": quarter{}, "per rune": perRune{}, "per word": perWord{}, "cl100k_base": cl100k(t)}
	for name, count := range counters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed.Check(t, func(rt *rapid.T) {
				var b strings.Builder
				for range rapid.IntRange(1, 5).Draw(rt, "pieces") {
					piece := rapid.SampledFrom([]string{"a", " ", "word ", "統一", "👩‍👧", "0a1b", "\n", "é"}).Draw(rt, "piece")
					b.WriteString(strings.Repeat(piece, rapid.IntRange(1, 2_000).Draw(rt, "times")))
				}
				m := core.Message{ID: core.MessageID(fmt.Sprintf(worstID, 1)), Role: core.RoleUser, Content: b.String()}
				m.TokenCount = costs(m, count)
				limit := rapid.IntRange(150, 3_000).Draw(rt, "limit")
				got := assembleShortened(m, limit, count)
				if m.TokenCount <= limit {
					return // a plan does not shorten what is short enough
				}
				if n := 4 + count.Text(got); n > limit {
					rt.Fatalf("%d tokens, want at most %d", n, limit)
				}
				head, tail, ok := strings.Cut(got, "\n[… shortened from")
				_, tail, ok2 := strings.Cut(tail, "…]\n")
				if !ok || !ok2 || !utf8.ValidString(got) || !strings.HasPrefix(m.Content, head) || !strings.HasSuffix(m.Content, tail) {
					rt.Fatalf("not head, marker and tail: %q", got)
				}
			})
		})
	}
}

// assembleShortened returns the message as it is in a prompt when it is held to
// limit tokens.
func assembleShortened(m core.Message, limit int, count textCounter) string {
	d := cw.Decision{Run: []cw.Slot{{Item: cw.ItemOf(m, llm.Info{}, quarter{}), Place: core.PlaceShortened, Limit: limit}}}
	p := cw.Assemble(cw.Parts{Messages: map[core.MessageID]*core.Message{m.ID: &m}}, d, count)
	return p.Messages[0].Content
}

func worstIDs() core.MessageID { return core.MessageID(fmt.Sprintf(worstID, 0)) }

// weighing adds up how many bytes are counted.
type weighing struct {
	textCounter
	bytes *int
}

func (w weighing) Text(s string) int {
	*w.bytes += len(s)
	return w.textCounter.Text(s)
}

// 1 MiB of anything is shortened by counting little more of it than what stays, a few times over.
func TestShortenOneMiB(t *testing.T) {
	t.Parallel()
	count := cl100k(t)
	for name, text := range hostile() {
		text = strings.Repeat(text, 1<<20/len(text)+1)
		m := core.Message{ID: worstIDs(), Role: core.RoleUser, Content: text, TokenCount: 1 << 20}
		counted := 0
		got := assembleShortened(m, 4_000, weighing{count, &counted})
		if most := 6*len(got) + 300_000; counted > most {
			t.Errorf("%s: counted %d bytes for a text of %d, want at most %d", name, counted, len(got), most)
		}
	}
}
