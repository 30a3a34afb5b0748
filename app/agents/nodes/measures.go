package nodes

import (
	"encoding/json"
	"fmt"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
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

// Measured returns what an earlier attempt of the run has measured.
func Measured(run core.Run) Measures {
	var r core.ContextReport
	if len(run.Context) == 0 || json.Unmarshal(run.Context, &r) != nil {
		return Measures{}
	}
	return Measures{Overflows: r.Overflows, Rungs: r.Rungs, Reasons: r.Reasons}
}

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

// In returns the report of the run's last prompt with what all of them needed.
func (m Measures) In(r core.ContextReport) core.ContextReport {
	for _, rung := range r.Rungs {
		m = m.withMeasure(rung, "")
	}
	for _, reason := range r.Reasons {
		m = m.withMeasure("", reason)
	}
	r.Overflows = m.Overflows
	r.Rungs, r.Reasons = append([]string{}, m.Rungs...), append([]string{}, m.Reasons...)
	return r
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
