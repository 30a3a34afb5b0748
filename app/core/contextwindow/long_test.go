package contextwindow_test

import (
	"testing"

	cw "bobbin/app/core/contextwindow"
	"bobbin/tests/seed"
)

// session carries out what plans decide over many turns, with a summarizer that
// uses nine tenths of what it may.
type session struct {
	talk
	t       *testing.T
	policy  cw.Policy
	window  int
	state   cw.PromptState
	summary cw.ActiveSummary

	compactions, largest int
	rungs                map[int]int
}

// plan makes the prompt of the run that began after start messages.
func (s *session) plan(start int) {
	s.t.Helper()
	through := int(s.summary.ThroughSeq)
	in := s.during(s.policy, s.window, int64(start+1))
	in.History, in.Summary, in.State, in.Factor = in.History[through:], s.summary, s.state, 1.1
	d, state := cw.Plan(in)
	for d.Summarize != nil {
		s.climbed(d)
		in = in.After(*d.Summarize, max(d.Summarize.Limit*9/10, 1), int(d.Summarize.ThroughSeq))
		in.State, s.summary = state, in.Summary
		d, state = cw.Plan(in)
	}
	if d.Floor != nil || d.Total > d.Budget.Usable {
		s.t.Fatalf("#%d: %d tokens, floor %v", len(s.log), d.Total, d.Floor)
	}
	if d.Compacted {
		s.compactions++
		s.climbed(d)
	}
	s.state, s.largest = state, max(s.largest, d.Total)
}

func (s *session) climbed(d cw.Decision) {
	for _, r := range d.Rungs {
		s.rungs[r]++
	}
}

// R7, invariant 6: hundreds of turns, half of them with tools, never
// overflow; where a policy summarizes that is all it takes, a compaction comes no
// more often than ¼ of the trigger is new, and what is stored does not grow.
func TestLongSessionIsSteady(t *testing.T) {
	t.Parallel()
	for _, name := range cw.PresetNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rnd := seed.Rand(t, 1)
			s := &session{t: t, policy: preset(t, name), window: 8_192, rungs: map[int]int{}}
			for turn := range 400 {
				start := len(s.log)
				s.user(10 + rnd.IntN(150))
				s.plan(start)
				for range turn % 2 * (1 + rnd.IntN(3)) {
					s.round(50+rnd.IntN(600), 30)
					s.plan(start)
				}
				s.answer(20 + rnd.IntN(1_200))
			}
			byMessages := s.policy.MaxMessages+s.policy.WindowMessages > 0
			budget := s.policy.Budget(cw.Limits{Window: s.window}, 0)
			if most := int(1.1*float64(s.tokens()))/(budget.Trigger/4) + 1; s.compactions > most && !byMessages {
				t.Errorf("%d compactions, want at most %d over %d tokens", s.compactions, most, s.tokens())
			}
			if name != "off" && s.rungs[6]+s.rungs[7]+s.rungs[4] > 0 {
				t.Errorf("got rungs %v, want summaries only", s.rungs)
			}
			if n := len(s.state.Encode()); n > 2_000 {
				t.Errorf("the state has %d bytes", n)
			}
			t.Logf("%d messages, %d compactions, rungs %v, largest prompt %d", len(s.log), s.compactions, s.rungs, s.largest)
		})
	}
}
