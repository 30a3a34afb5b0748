package contextwindow_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/prompttext"
	"bobbin/tests/seed"
)

// The invariants of the package documentation, each over thousands of random conversations:
// tools, parallel calls, huge messages, CJK, imports, pins, switches of model.
// tests/mutants breaks the code in one way for each and expects its test to fail.

// every checks all prompts of random conversations that could be sent.
func every(t *testing.T, check func(rt *rapid.T, sh shot)) {
	t.Helper()
	t.Parallel()
	seed.Check(t, func(rt *rapid.T) {
		simulate(rt, func(sh shot) {
			if sh.d.Floor == nil {
				check(rt, sh)
			}
		})
	})
}

// rendered counts a prompt as the provider would.
func rendered(sh shot) int {
	n := cw.ListOverhead + sh.in.Tools
	if sh.d.Frozen != "" {
		n = cw.ListOverhead + ruler{}.Tools(sh.prompt.Tools)
	}
	for _, b := range sh.prompt.System {
		n += quarter{}.Text(b) + 1
	}
	for _, m := range sh.prompt.Messages {
		n += 4 + quarter{}.Text(m.Content)
		for _, c := range m.ToolCalls {
			n += 8 + quarter{}.Text(c.Name) + quarter{}.Text(c.Arguments)
		}
		n += ruler{}.Tools(m.AddedTools)
		for _, name := range m.RemovedTools {
			n += quarter{}.Text(name)
		}
	}
	return int(math.Ceil(float64(n) * sh.in.Factor))
}

// Invariant 1; W5, W12, R7.
func TestInvariant1NeverLargerThanUsable(t *testing.T) {
	every(t, func(rt *rapid.T, sh shot) {
		if sh.d.Total > sh.d.Budget.Usable {
			rt.Fatalf("planned %d tokens, usable are %d", sh.d.Total, sh.d.Budget.Usable)
		}
		if got := rendered(sh); got > sh.d.Total {
			rt.Fatalf("the prompt has %d tokens, the plan said %d", got, sh.d.Total)
		}
		if sh.d.Total+sh.d.MaxOutput > sh.d.Budget.Window {
			rt.Fatalf("prompt %d + output %d > window %d", sh.d.Total, sh.d.MaxOutput, sh.d.Budget.Window)
		}
	})
}

// Invariant 2.
func TestInvariant2EveryMessageInOnePlace(t *testing.T) {
	every(t, func(rt *rapid.T, sh shot) {
		places := map[core.MessageID]cw.Slot{}
		for _, s := range append(append([]cw.Slot(nil), sh.d.History...), sh.d.Run...) {
			if _, twice := places[s.ID]; twice {
				rt.Fatalf("message #%d is in two places", s.Seq)
			}
			places[s.ID] = s
		}
		sent := map[core.MessageID]string{}
		for _, m := range sh.prompt.Messages {
			sent[m.ID] = m.Content
		}
		system := strings.Join(sh.prompt.System, "\n")
		for _, m := range sh.s.log {
			if m.Role == core.RoleSystem {
				continue // W14
			}
			s, planned := places[m.ID]
			if covered := m.Seq <= sh.in.Summary.ThroughSeq; covered == planned {
				rt.Fatalf("message #%d: covered %v, in the plan %v", m.Seq, covered, planned)
			} else if covered {
				continue
			}
			checkPlace(rt, m, s, sent, system)
		}
	})
}

func checkPlace(rt *rapid.T, m core.Message, s cw.Slot, sent map[core.MessageID]string, system string) {
	content, isSent := sent[m.ID]
	switch {
	case s.Note:
		if !strings.Contains(system, prompttext.WithSpeaker(m)) {
			rt.Fatalf("pinned message #%d is not among the notes", m.Seq)
		}
	case s.Place == core.PlaceVerbatim:
		if !isSent || content != prompttext.WithSpeaker(m) && !(s.Orphan && strings.HasSuffix(content, m.Content)) {
			rt.Fatalf("message #%d is called verbatim and is not", m.Seq)
		}
	case s.Place == core.PlaceCovered:
		if isSent || s.Loop == "" {
			rt.Fatalf("message #%d is called covered by %q: sent %v", m.Seq, s.Loop, isSent)
		}
	case s.Place == core.PlaceLeftOut:
		if isSent || !strings.Contains(system, "left out here") {
			rt.Fatalf("message #%d is called left out: sent %v, marker %q", m.Seq, isSent, system)
		}
	default: // masked or shortened
		calls := len(m.ToolCalls) > 0
		if !isSent || !calls && !strings.Contains(content, string(m.ID)) {
			rt.Fatalf("message #%d is called %s and has no visible marker: %q", m.Seq, s.Place, content)
		}
	}
}

// Invariant 3.
func TestInvariant3CursorOnlyForwardAndOnlyOverWhatWasRead(t *testing.T) {
	every(t, func(rt *rapid.T, sh shot) {
		cursor := sh.started.ThroughSeq
		for i, o := range sh.orders {
			if o.ThroughSeq <= cursor {
				rt.Fatalf("the cursor went from %d to %d", cursor, o.ThroughSeq)
			}
			given := sh.given[i]
			for _, m := range given {
				if m.Seq != cursor+1 {
					rt.Fatalf("the summarizer was not given #%d", cursor+1)
				}
				cursor++
			}
			if cursor != o.ThroughSeq {
				rt.Fatalf("cursor %d, read up to %d", o.ThroughSeq, cursor)
			}
			if sh.s.runStart >= 0 && o.ThroughSeq >= sh.s.log[sh.s.runStart].Seq {
				rt.Fatalf("the cursor passed the message of the run in progress")
			}
		}
	})
}

// Invariant 4.
func TestInvariant4NoCallWithoutResult(t *testing.T) {
	every(t, func(rt *rapid.T, sh shot) {
		paired(rt, sh.prompt)
		for _, m := range sh.prompt.Messages {
			for _, c := range m.ToolCalls {
				if !json.Valid([]byte(c.Arguments)) {
					rt.Fatalf("arguments are not JSON: %s", c.Arguments)
				}
			}
		}
	})
}

// Invariant 5.
func TestInvariant5LatestUserMessage(t *testing.T) {
	every(t, func(rt *rapid.T, sh shot) {
		want := sh.s.log[sh.s.runStart]
		for _, m := range sh.prompt.Messages {
			if m.ID != want.ID {
				continue
			}
			if m.Content == prompttext.WithSpeaker(want) {
				return
			}
			if got := alone(sh, want); sh.d.Compacted && got < sh.d.Budget.Usable {
				rt.Fatalf("the user's message (%d tokens) was shortened though all that must be with it has %d of %d", want.TokenCount, got, sh.d.Budget.Usable)
			}
			return
		}
		rt.Fatalf("the latest user message is not in the prompt")
	})
}

// alone returns what the prompt has at most when only what cannot be taken from it
// is there with the user's message: pinned messages and the shortest form of the
// newest tool round, with the texts that say so.
func alone(sh shot, user core.Message) int {
	n := user.TokenCount + quarter{}.Text(prompttext.SpeakerLine(user)) + sh.in.System + cw.ListOverhead + sh.in.Tools + 300
	last := 0
	for i, it := range sh.in.Run {
		if it.Role == core.RoleAssistant {
			last = i
		}
	}
	for i, s := range sh.d.Run[1:] {
		switch {
		case s.Pinned:
			n += s.Tokens + 50
		case i+1 >= last:
			n += min(s.Tokens, 96+80*len(s.Calls)) + 32*s.Missing + 1
		}
	}
	for _, s := range sh.d.Pinned {
		n += s.Tokens + 50
	}
	for _, s := range sh.d.History {
		if s.Pinned && !s.Note {
			n += s.Tokens + 50
		}
	}
	return int(math.Ceil(float64(n) * sh.in.Factor))
}

// Invariant 6.
func TestInvariant6LandsAndStaysQuiet(t *testing.T) {
	every(t, func(rt *rapid.T, sh shot) {
		if !sh.d.Compacted {
			return
		}
		if sh.d.Total-recalledTokens(sh.d) > sh.d.Budget.Landing && len(sh.d.Reasons) == 0 {
			rt.Fatalf("landed at %d, above %d, and does not say why", sh.d.Total, sh.d.Budget.Landing)
		}
		again := sh.s.input()
		again.NoSummary, again.NoLoop = sh.noGain, sh.noNotes
		if d, _ := cw.Plan(again); d.Compacted || d.Summarize != nil || d.Activate != nil {
			rt.Fatalf("the same plan triggers again: %v", d.Triggers)
		}
		room := min(sh.d.Budget.Trigger/4, sh.d.Budget.Usable-sh.d.Total+recalledTokens(sh.d)) - 10
		if tokens := int(float64(room) / sh.in.Factor); tokens > 10 && !sinceTriggers(sh.s.policy) {
			more := cw.Item{ID: "more", Seq: 1 << 40, Role: core.RoleUser, Tokens: tokens}
			again.Run = append(again.Run, more)
			again.Loop.MaxContextTokens = 0 // a limit of its own
			if d, _ := cw.Plan(again); d.Compacted || d.Summarize != nil || d.Activate != nil {
				rt.Fatalf("%d new tokens trigger again, a quarter of the trigger is %d", room, sh.d.Budget.Trigger/4)
			}
		}
	})
}

// sinceTriggers reports whether the policy counts messages since the cursor.
func sinceTriggers(p cw.Policy) bool {
	return p.MaxMessages+p.WindowMessages+p.MaxTokens+p.MaxUnsummarized > 0
}

// Invariant 7; R5.
func TestInvariant7PrefixIsStable(t *testing.T) {
	every(t, func(rt *rapid.T, sh shot) {
		prev := sh.previous
		if prev == nil || prev.d.Floor != nil || prev.epoch != sh.epoch {
			return
		}
		if diff := cmp.Diff(prev.prompt.System, sh.prompt.System); diff != "" {
			rt.Fatalf("the system blocks changed (-before +after):\n%s", diff)
		}
		before, after := marshal(prev.prompt), marshal(sh.prompt)
		if !strings.HasPrefix(after, before) {
			rt.Fatalf("prompt k is no prefix of prompt k+1:\n%s\n%s", before, after)
		}
	})
}

// marshal returns the messages that stay as bytes, without the closing bracket.
func marshal(p cw.Prompt) string {
	raw, err := json.Marshal(slices.DeleteFunc(p.LLM(), func(m llm.Message) bool { return m.Passing }))
	if err != nil {
		panic(err)
	}
	return strings.TrimSuffix(string(raw), "]")
}

// Invariant 8.
func TestInvariant8OffNeverSummarizes(t *testing.T) {
	every(t, func(rt *rapid.T, sh shot) {
		if sh.s.policy.Name == "off" && len(sh.orders) > 0 {
			rt.Fatalf("policy off summarized: %+v", sh.orders)
		}
		if !sh.s.policy.AutoSummarize && sh.s.policy.MaxUnsummarized == 0 && len(sh.orders) > 0 {
			rt.Fatalf("auto_summarize false summarized: %+v", sh.orders)
		}
	})
}

// Invariant 9.
func TestInvariant9FirstMessageIsTheUsers(t *testing.T) {
	every(t, func(rt *rapid.T, sh shot) {
		if got := sh.prompt.Messages[0].Role; got != core.RoleUser {
			rt.Fatalf("the first message is from %s", got)
		}
	})
}

// Invariant 10; W5, W12 (short conversation).
func TestInvariant10UnderTheTriggerNothingChanges(t *testing.T) {
	every(t, func(rt *rapid.T, sh shot) {
		if len(sh.loops) > 0 || sh.noNotes || sh.noGain {
			return
		}
		if len(sh.orders)+len(sh.d.Rungs) > 0 && fresh(sh) && under(sh) {
			rt.Fatalf("under all triggers and compacted: orders %+v, rungs %v, %q", sh.orders, sh.d.Rungs, sh.d.Reasons)
		}
		raw, _ := json.Marshal(sh.s.state)
		if sh.s.summary.Version > 0 || string(raw) != "{}" || len(sh.d.Rungs) > 0 {
			return
		}
		for _, tr := range sh.d.Triggers {
			if tr.Name == "share" && tr.Value > tr.Threshold && !left(sh) {
				rt.Fatalf("over the trigger and nothing was done: %+v", tr)
			}
		}
		if diff := cmp.Diff(naive(sh.s.log), withoutStanding(sh.prompt).LLM()); diff != "" {
			rt.Fatalf("the prompt is not the conversation (-want +got):\n%s", diff)
		}
		if want := []string{sh.s.system}; !cmp.Equal(want, sh.prompt.System) {
			rt.Fatalf("system blocks %q, want %q", sh.prompt.System, want)
		}
	})
}

// left reports whether what is over the trigger is summarized beside the prompt, or
// after it.
func left(sh shot) bool {
	return sh.in.Resting || sh.in.Policy.Timing == cw.TimingAfterRun ||
		sh.in.Policy.Timing == cw.TimingBackground && (sh.in.Busy || sh.d.Prepare != nil)
}

// fresh reports whether nothing had been compacted before this prompt.
func fresh(sh shot) bool { return sh.started.Version == 0 && string(sh.stateIn.Encode()) == "{}" }

// under reports whether the whole conversation is under every trigger, counted
// without the plan's help and rather too large.
func under(sh shot) bool {
	p, b := sh.s.policy, sh.d.Budget
	all, tail, count := float64(sh.in.System+cw.ListOverhead+sh.in.Tools+24), 0.0, 0
	for _, i := range sh.in.Standing {
		all += float64(i.Tokens + 128)
	}
	for i, m := range sh.s.log {
		if m.Role == core.RoleSystem {
			continue
		}
		size := float64(m.TokenCount+quarter{}.Text(prompttext.SpeakerLine(m))+16+32*len(m.ToolCalls)) + 1/sh.in.Factor
		all += size
		if i < sh.s.runStart {
			tail += size
			count++
		}
	}
	below := func(n, trigger int) bool { return trigger == 0 || n < trigger }
	return int(all*sh.in.Factor)+4 <= b.Trigger && below(count, p.MaxMessages) && below(count, p.MaxUnsummarized) &&
		(p.WindowMessages == 0 || count <= p.WindowMessages) && below(int(tail*sh.in.Factor)+1, p.MaxTokens)
}

// Invariant 11; P16-5.
func TestInvariant11RecalledPassagesTakeNothing(t *testing.T) {
	every(t, func(rt *rapid.T, sh shot) {
		without := sh.in
		without.Recalled = nil
		d, _ := cw.Plan(without)
		got := sh.d
		if size := recalledTokens(got); size != got.Total-d.Total || size > got.Budget.Recall {
			rt.Fatalf("the passages have %d tokens of %d; with them the prompt has %d, without %d", size, got.Budget.Recall, got.Total, d.Total)
		}
		places := func(d cw.Decision) string {
			return fmt.Sprint(d.History, d.Run, d.Pinned, d.Loops, d.SummaryCut, d.Triggers, d.Compacted)
		}
		if places(got) != places(d) {
			rt.Fatalf("the passages change the plan:\n%s\n%s", places(got), places(d))
		}
		known := map[int64]bool{}
		for _, s := range slices.Concat(got.Pinned, got.History, got.Run) {
			known[s.Seq] = s.Note || s.Place != core.PlaceLeftOut && s.Place != core.PlaceCovered
		}
		last := int64(0)
		for _, c := range got.Recalled {
			if known[c.Seq] || c.Seq <= last {
				rt.Fatalf("#%d is quoted, which the prompt has, or after #%d", c.Seq, last)
			}
			last = c.Seq
		}
		before := 0
		for i, m := range sh.prompt.Messages {
			if m.Passing {
				before++
				if rest := sh.prompt.Messages[i+1:]; len(rest) == 0 || rest[0].ID != sh.s.log[sh.s.runStart].ID || m.Place != core.PlaceRecalled {
					rt.Fatalf("the passages are not before the run's message: %+v", m)
				}
			}
		}
		if want := min(len(got.Recalled), 1); before != want {
			rt.Fatalf("%d messages with passages, want %d", before, want)
		}
	})
}

// recalledTokens returns the size of the recalled passages.
func recalledTokens(d cw.Decision) int { return sectionTokens(d, "recalled") }

// sectionTokens returns the size of a section of the prompt.
func sectionTokens(d cw.Decision, name string) int {
	for _, s := range d.Sections {
		if s.Name == name {
			return s.Tokens
		}
	}
	return 0
}

// naive is a chat backend without context management; it knows only that calls
// need results in order and that a user speaks first.
func naive(log []core.Message) []llm.Message {
	var out []llm.Message
	results := map[string]core.Message{}
	for _, m := range log {
		if m.Role == core.RoleTool {
			results[m.ToolCallID] = m
		}
	}
	for _, m := range log {
		switch {
		case m.Role == core.RoleSystem || m.Role == core.RoleTool && m.ToolCallID != "nobody":
			continue
		case m.Role == core.RoleTool:
			m = core.Message{Role: core.RoleUser, Content: "[A tool result without its call:]\n" + m.Content}
		}
		if len(out) == 0 && m.Role != core.RoleUser {
			out = append(out, llm.Message{Role: core.RoleUser, Content: "[The conversation begins with the assistant.]"})
		}
		out = append(out, llm.Message{Role: m.Role, Content: prompttext.WithSpeaker(m), ToolCalls: m.ToolCalls})
		for _, c := range m.ToolCalls {
			r, ok := results[c.ID]
			if !ok {
				r.Content = "[no result: the call was interrupted]"
			}
			out = append(out, llm.Message{Role: core.RoleTool, Content: r.Content, ToolCallID: c.ID, ToolName: r.ToolName})
		}
	}
	return out
}
