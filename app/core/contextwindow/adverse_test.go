package contextwindow_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
	"bobbin/tests/seed"
)

// adverse is an input that no orderly conversation leads to: tiny windows, states
// of other models, caps, everything pinned, huge calls, runs of many rounds.
type adverse struct {
	talk
	in cw.Input
}

func drawAdverse(rt *rapid.T) *adverse {
	a := &adverse{}
	for range rapid.IntRange(0, 12).Draw(rt, "turns") {
		a.drawTurn(rt, rapid.IntRange(0, 3).Draw(rt, "rounds"))
	}
	start := len(a.log)
	if rapid.IntRange(0, 4).Draw(rt, "between runs") > 0 {
		a.drawTurn(rt, rapid.SampledFrom([]int{0, 1, 2, 5, 60}).Draw(rt, "run rounds"))
		if last := &a.log[len(a.log)-1]; last.Role == core.RoleAssistant && len(last.ToolCalls) == 0 {
			a.log = a.log[:len(a.log)-1]
		}
	}
	all := rapid.IntRange(0, 9).Draw(rt, "pin all") == 0
	for i := range a.log {
		a.log[i].Pinned = all || rapid.IntRange(0, 15).Draw(rt, "pin") == 0
	}
	items := a.items(1)
	a.in = cw.Input{
		Policy: drawPolicy(rt), Factor: rapid.SampledFrom([]float64{0.5, 0.7, 1, 1.1, 1.43, 4}).Draw(rt, "factor"),
		Model: cw.Limits{
			Window:    rapid.OneOf(rapid.IntRange(1, 1_500), rapid.SampledFrom([]int{2_048, 8_192, 128_000})).Draw(rt, "window"),
			MaxOutput: rapid.SampledFrom([]int{0, 100, 1_000_000}).Draw(rt, "output"),
		},
		Margin: rapid.SampledFrom([]float64{0, 0.1, 5}).Draw(rt, "margin"), Cap: rapid.SampledFrom([]int{0, 0, 0, 1, 500, 5_000}).Draw(rt, "cap"),
		System: testSystem, Tools: rapid.SampledFrom([]int{0, 100, 2_000}).Draw(rt, "tools"),
		History: items[:start], Run: items[start:], State: drawState(rt, items[:start]),
		Force: rapid.IntRange(0, 5).Draw(rt, "force") == 0, NoSummary: rapid.IntRange(0, 5).Draw(rt, "no summary") == 0,
	}
	if rapid.Bool().Draw(rt, "summary") {
		a.in.Summary = core.SummaryVersion{Version: 1, Tokens: rapid.SampledFrom([]int{1, 300, 9_000}).Draw(rt, "summary tokens"), Messages: 7}
	}
	return a
}

func drawPolicy(rt *rapid.T) cw.Policy {
	p, err := cw.Preset(rapid.SampledFrom(cw.PresetNames()).Draw(rt, "policy"))
	if err != nil {
		rt.Fatal(err)
	}
	switch rapid.IntRange(0, 3).Draw(rt, "changed") {
	case 0:
		p.AutoSummarize = !p.AutoSummarize
	case 1:
		p.MinRecent, p.MaxMessages, p.MaxTokens = 1, 3, 200
	default:
	}
	return p
}

// drawTurn appends a user message, tool rounds and an answer, of any size.
func (a *adverse) drawTurn(rt *rapid.T, rounds int) {
	size := func(label string) int {
		return rapid.SampledFrom([]int{5, 20, 60, 100, 300, 2_000, 40_000}).Draw(rt, label)
	}
	a.user(size("user"))
	for range rounds {
		huge := rapid.SampledFrom([]int{0, 0, 0, 300, 30_000}).Draw(rt, "arguments")
		results := make([]int, rapid.IntRange(1, 3).Draw(rt, "parallel"))
		for i := range results {
			results[i] = size("result")
		}
		a.round(results...)
		m := &a.log[len(a.log)-len(results)-1]
		m.ToolCalls[0].Arguments += strings.Repeat(" ", 4*huge)
		m.TokenCount += huge
		if rapid.IntRange(0, 20).Draw(rt, "lost") == 0 && len(results) > 1 {
			a.log[len(a.log)-1].ToolCallID = rapid.SampledFrom([]string{"", "nobody", "call_1"}).Draw(rt, "whose")
		}
	}
	a.answer(size("answer"))
}

// drawState is what some other model left behind.
func drawState(rt *rapid.T, history []cw.Item) cw.PromptState {
	var s cw.PromptState
	if rapid.IntRange(0, 2).Draw(rt, "state") > 0 || len(history) == 0 {
		return s
	}
	s.MaskedThrough = int64(rapid.IntRange(0, len(history)).Draw(rt, "masked"))
	s.Shortened = map[core.MessageID]int{}
	from := int64(0)
	for _, it := range history {
		if least := 96 + 80*len(it.Calls); least < it.Tokens && rapid.IntRange(0, 5).Draw(rt, "short") == 0 {
			s.Shortened[it.ID] = rapid.IntRange(least, it.Tokens-1).Draw(rt, "to")
		}
		if it.Role != core.RoleUser {
			continue
		}
		if from > 0 && rapid.IntRange(0, 3).Draw(rt, "left out") == 0 {
			s.LeftOut = append(s.LeftOut, cw.SeqRange{From: from, Through: it.Seq - 1})
		}
		from = it.Seq
	}
	s.SummaryCut = rapid.SampledFrom([]int{0, 1, 50}).Draw(rt, "cut")
	s.Landed = &cw.Landing{
		Tokens: rapid.SampledFrom([]int{10, 3_000, 100_000}).Draw(rt, "landed"),
		Window: rapid.SampledFrom([]int{1, 2_048, 128_000}).Draw(rt, "landed window"),
	}
	return s
}

// settled plans until nothing more is ordered, as a caller does.
func (a *adverse) settled(rt *rapid.T) (cw.Input, cw.Decision, cw.PromptState) {
	in := a.in
	for round := 1; ; round++ {
		d, state := cw.Plan(in)
		if d.Summarize == nil {
			return in, d, state
		}
		a.checkOrder(rt, in, *d.Summarize)
		in = in.After(*d.Summarize, min(d.Summarize.Limit, d.Summarize.Tokens-1), 9)
		in.State, in.NoSummary = state, round >= 3
	}
}

// checkOrder checks invariants 3 and 8.
func (a *adverse) checkOrder(rt *rapid.T, in cw.Input, o cw.Order) {
	i := slices.IndexFunc(in.History, func(it cw.Item) bool { return it.Seq == o.ThroughSeq })
	rest := slices.Concat(in.History, in.Run)[i+1:]
	switch {
	case in.NoSummary:
		rt.Fatalf("ordered although it brings nothing: %+v", o)
	case i < 0 || o.Messages != i+1 || o.FromSeq != in.History[0].Seq || o.ThroughID != in.History[i].ID:
		rt.Fatalf("the order %+v is not the beginning of the history", o)
	case len(rest) == 0 || rest[0].Role != core.RoleUser:
		rt.Fatalf("the tail does not begin with a user's message: %+v", o)
	case o.Limit < 1 || o.AskFor > o.Limit || o.Rung != 2 && o.Rung != 3:
		rt.Fatalf("order %+v", o)
	}
}

// Invariants 1, 2, 4, 5, 6 on invalid inputs.
func TestPlanSurvivesAnything(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(rt *rapid.T) {
		a := drawAdverse(rt)
		in, d, state := a.settled(rt)
		before := in.State.Encode()
		if d2, state2 := cw.Plan(in); !cmp.Equal(d, d2) || !cmp.Equal(state, state2) || string(before) != string(in.State.Encode()) {
			rt.Fatalf("the same input gives another plan, or the plan changed its input")
		}
		if d.Floor != nil {
			a.checkFloor(rt, in, d)
			return
		}
		limit := d.Budget.Usable
		if in.Cap > 0 {
			limit = min(limit, in.Cap)
		}
		parts := a.parts()
		parts.Summary = words("summary", in.Summary.Tokens)
		if in.Summary.Version == 0 {
			parts.Summary = ""
		}
		p := cw.Assemble(parts, d, quarter{})
		if got := rendered(shot{in: in, d: d, prompt: p}); got > d.Total || d.Total > limit {
			rt.Fatalf("the prompt has %d tokens, the plan said %d, %d are allowed", got, d.Total, limit)
		}
		if len(in.Run) > 0 && !slices.Contains(ids(p), in.Run[0].ID) {
			rt.Fatal("the latest user message is not in the prompt")
		}
		if d.MaxOutput < 1 || d.MaxOutput > max(d.Budget.Window-d.Total, 1) {
			rt.Fatalf("output limit %d, prompt %d, window %d", d.MaxOutput, d.Total, d.Budget.Window)
		}
		paired(rt, p)
		a.checkAgain(rt, in, d, state)
	})
}

// checkAgain fails if the same plan, with the state it left, decides otherwise.
func (a *adverse) checkAgain(rt *rapid.T, in cw.Input, d cw.Decision, state cw.PromptState) {
	in.State, in.Summarized, in.Force = state, false, false
	if in.Policy.Timing == cw.TimingInline { // the others send what fits, and wait for a summary that is made beside it
		in.NoSummary = true
	}
	again, state2 := cw.Plan(in)
	if again.Compacted || again.Total != d.Total || !cmp.Equal(state, state2) {
		rt.Fatalf("planned %d tokens, then %d (rungs %v, then %v)\nstate %s\nthen  %s",
			d.Total, again.Total, d.Rungs, again.Rungs, state.Encode(), state2.Encode())
	}
}

// checkFloor fails if the plan gave up although the least of everything fits:
// system prompt, tools, pinned messages as notes, the shortest form of the user's
// message and of the newest tool round.
func (a *adverse) checkFloor(rt *rapid.T, in cw.Input, d cw.Decision) {
	least := in.System + cw.ListOverhead + in.Tools + 128 + 96 + 16 + 48
	notes := slices.Clone(in.Pinned)
	for _, it := range in.History {
		if it.Pinned {
			notes = append(notes, it)
		}
	}
	last := len(in.Run)
	for i := len(in.Run) - 1; i > 0; i-- {
		if in.Run[i].Role == core.RoleAssistant {
			last = i
			break
		}
	}
	for i, it := range in.Run {
		switch {
		case it.Pinned:
			notes = append(notes, it)
		case i == 0 || i >= last:
			least += min(it.Tokens+16, 96+80*len(it.Calls)) + 32*len(it.Calls)
		}
	}
	for _, it := range notes {
		least += it.Tokens + 40 + 32*len(it.Calls)
	}
	need := int(math.Ceil(float64(least)*in.Factor)) + len(in.Run) + len(notes) + 10
	if need <= d.Floor.Usable {
		rt.Fatalf("gave up at %d tokens though %d would do of %d: %v", d.Floor.Floor, need, d.Floor.Usable, d.Reasons)
	}
	if d.Compacted {
		rt.Fatal("nothing was sent, and the state changed")
	}
}
