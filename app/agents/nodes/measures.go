package nodes

import (
	"context"
	"fmt"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/tokens"
)

// Measures are what was done in a run so that its prompts fit. A compaction leaves its
// mark in the plan that orders it, not in the next one; here all of a run are kept, for
// its context report. The slices are never changed in place.
type Measures struct {
	Overflows int      // prompts that the provider refused as too long
	Rungs     []string // of the ladder, in the order in which they were climbed
	Reasons   []string
}

// maxReasons bounds what a run says of itself.
const maxReasons = 20

// withMeasure returns the measures with those of one more.
func (m Measures) withMeasure(rung, reason string) Measures {
	if rung != "" && !slices.Contains(m.Rungs, rung) {
		m.Rungs = append(m.Rungs[:len(m.Rungs):len(m.Rungs)], rung)
	}
	if reason != "" && len(m.Reasons) < maxReasons && !slices.Contains(m.Reasons, reason) {
		m.Reasons = append(m.Reasons[:len(m.Reasons):len(m.Reasons)], reason)
	}
	return m
}

// Refused returns the measures after the provider refused a prompt.
func (m Measures) Refused(reason string) Measures {
	m.Overflows++
	return m.withMeasure("", reason)
}

// Fitted returns the state with the turn as Fit left it, but for what holds for the tries of one
// model call, and with what that took.
func (s AgentState) Fitted(t compaction.Turn, d contextwindow.Decision) AgentState {
	if v := t.Session.SummaryVersion; v > s.Session.SummaryVersion {
		const summarize = 2
		s.Measures = s.Measures.withMeasure(contextwindow.RungName(summarize),
			fmt.Sprintf("summary version %d covers %d messages", v, t.Session.SummarizedCount))
	}
	for _, n := range d.Rungs {
		s.Measures = s.Measures.withMeasure(contextwindow.RungName(n), "")
	}
	for _, reason := range d.Reasons {
		s.Measures = s.Measures.withMeasure("", reason)
	}
	t.Work, t.Cap, t.Trial, t.RefusedNative = core.SummaryWork{}, 0, false, false
	s.Turn = t
	return s
}

// recordCalls writes the calls so far into the books, which no other write of the run takes
// along, with the report of the last prompt.
func (n *LLM) recordCalls(ctx context.Context, s AgentState, c call) {
	w := newWrite(s)
	w.ModelCalls, w.Usage = c.records, sumUsage(c.records)
	if c.turn.Profile.Model != nil { // nil = no prompt was made
		if report, err := n.contextReport(s, c); err == nil {
			w.Context = report
		}
	}
	if _, err := n.Journal.Append(ctx, w); err != nil {
		n.Logger.WarnContext(ctx, "model call not booked", "run_id", s.Run.ID, "err", err)
	}
}

// sumUsage adds up what the calls cost.
func sumUsage(records []core.ModelCall) core.Usage {
	var u core.Usage
	for _, r := range records {
		u = u.Add(r.Usage)
	}
	return u
}

// boundParts returns the parts of the answer with what their thoughts are bound to. Where the provider
// left out thoughts of the prompt, it is not known behind which prompt the answer was produced: its thoughts
// do not go back. The first bound thought says what its prompt had beside messages: the instructions of the
// run as a message of its own, the system prompt and the tools, and the passages that it quoted, unless an
// earlier message of the run says the same.
func (n *LLM) boundParts(c call, run []core.Message) []core.Part {
	parts := slices.Clone(c.response.Parts)
	for i := range parts {
		if p := &parts[i]; p.Type == core.PartReasoning && p.Origin != "" {
			p.Tokens = tokens.Thought(n.Counter.Text, *p)
			if c.response.Dropped == nil {
				p.Prefix = c.prefix
			}
		}
	}
	i := slices.IndexFunc(parts, func(p core.Part) bool { return p.Prefix != "" })
	if i < 0 {
		return parts
	}
	p := &parts[i]
	p.Instructions, p.Setup, p.Frozen = c.sent.Instructions, c.decision.Setup, c.decision.Frozen
	p.Recalled = c.decision.RecalledPassages(c.sent.Of[contextwindow.SectionRecalled])
	if p.Recalled == nil {
		return parts
	}
	for _, m := range slices.Backward(run) {
		j := slices.IndexFunc(m.Parts, func(p core.Part) bool { return p.Recalled != nil })
		if j < 0 {
			continue
		}
		if slices.Equal(m.Parts[j].Recalled.Passages, p.Recalled.Passages) {
			p.Recalled = nil
		}
		break
	}
	return parts
}
