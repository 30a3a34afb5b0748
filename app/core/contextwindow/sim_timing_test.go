package contextwindow_test

import (
	"pgregory.net/rapid"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
)

// made is a summary that is ready and not in use.
type made struct {
	core.SummaryVersion
	text  string
	order cw.Order
	given []core.Message
}

// job is a summary in progress while the conversation continues.
type job struct {
	order   cw.Order
	given   []core.Message
	base    int  // version that it extends
	ahead   bool // it is prepared; else it is in use as soon as it is made
	prompts int  // sent until it is made
	fails   bool
}

// begin starts to make a summary. It may take several prompts, and may fail.
func (s *sim) begin(o cw.Order, ahead bool) {
	if s.job != nil {
		s.rt.Fatalf("a second summary is ordered while one is being made: %+v", o)
	}
	s.job = &job{
		order: o, given: s.given(o), base: s.summary.Version, ahead: ahead,
		prompts: rapid.SampledFrom([]int{0, 0, 1, 3, 20}).Draw(s.rt, "takes"),
		fails:   rapid.IntRange(0, 4).Draw(s.rt, "fails") == 0,
	}
}

// wait lets the summary that is being made come a prompt nearer to its end.
func (s *sim) wait() {
	j := s.job
	if j == nil {
		return
	}
	if j.prompts--; j.prompts >= 0 {
		return
	}
	s.job = nil
	if j.fails || j.base != s.summary.Version {
		return // nothing is stored
	}
	text := words("ahead", rapid.IntRange(1, max(j.order.Limit-1, 1)).Draw(s.rt, "ahead"))
	s.prepared = made{
		SummaryVersion: core.SummaryVersion{
			Version: s.summary.Version + 1, ThroughSeq: j.order.ThroughSeq, Tokens: quarter{}.Text(text), Messages: int(j.order.ThroughSeq),
		},
		text: text, order: j.order, given: j.given,
	}
	if j.ahead {
		return
	}
	s.activate()
	in := s.input()
	in.Phase, in.Summarized, in.NoSummary = cw.AfterRun, true, true
	_, s.state = cw.Plan(in)
	s.prev = nil
}

// versions returns what was made as Input has it; nothing if nothing was.
func (m made) versions() []core.SummaryVersion {
	if m.Version == 0 {
		return nil
	}
	return []core.SummaryVersion{m.SummaryVersion}
}

// activate puts the prepared summary to use.
func (s *sim) activate() {
	s.summary, s.text, s.prepared = s.prepared.SummaryVersion, s.prepared.text, made{}
}

// beside does what is done after a run, if the process lives to do it.
func (s *sim) beside() {
	if s.job != nil || rapid.IntRange(0, 3).Draw(s.rt, "crash") == 0 {
		return
	}
	in := s.input()
	in.Phase = cw.AfterRun
	d, state := cw.Plan(in)
	if d.Compacted {
		s.rt.Fatalf("a plan for nobody's prompt changed the state: %+v", d)
	}
	switch {
	case d.Summarize != nil:
		s.begin(*d.Summarize, false)
	case d.Prepare != nil:
		s.begin(*d.Prepare, true)
	case d.Activate != nil:
		s.activate()
		in = s.input()
		in.Phase, in.Summarized, s.prev = cw.AfterRun, true, nil
		in.State = state
		if d, state := cw.Plan(in); d.Summarize == nil {
			s.state = state
		}
	}
}
