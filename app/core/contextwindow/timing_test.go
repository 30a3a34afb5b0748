package contextwindow_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
	"bobbin/tests/compare"
)

// crossed reports whether a trigger is crossed in the decision. Where none counts the prompt, the
// oldest messages give way over the room for recalled passages.
func crossed(d cw.Decision) bool {
	limit := d.Budget.Usable
	if !d.Budget.HasShare {
		limit = d.Budget.Trigger
	}
	return d.Total-recalledTokens(d) > limit || slices.ContainsFunc(d.Triggers, func(s core.TriggerStatus) bool { return s.Fires })
}

// W5: a prepared summary, or one that is being made, changes no prompt
// under the triggers, and none is activated there.
func TestNothingIsSummarizedEarly(t *testing.T) {
	every(t, func(rt *rapid.T, sh shot) {
		without := sh.before
		without.Versions, without.Busy, without.Resting = nil, false, false
		plain, _ := cw.Plan(without)
		if crossed(plain) || len(plain.Rungs) > 0 {
			return
		}
		if len(sh.orders) > 0 || sh.first.Compacted {
			rt.Fatalf("no trigger is crossed (%+v) and the prompt changed: %+v", plain.Triggers, sh.orders)
		}
		plain.Prepare, plain.Reasons = sh.first.Prepare, sh.first.Reasons
		if diff := cmp.Diff(plain, sh.first); diff != "" {
			rt.Fatalf("what is prepared changed the prompt (-without +with):\n%s", diff)
		}
	})
}

// Nobody waits for a summary of a prompt that fits, but inline, before a run whose predecessor's
// summary failed (R4), and over the hard limit of unsummarized messages.
func TestNobodyWaitsForWhatFits(t *testing.T) {
	every(t, func(rt *rapid.T, sh shot) {
		in, d := sh.before, sh.first
		if d.Summarize == nil || d.Summarize.Kind == core.SummaryRun || d.Total > d.Budget.Usable || slices.Contains(d.Rungs, 1) {
			return
		}
		since := slices.ContainsFunc(d.Triggers, func(s core.TriggerStatus) bool {
			return s.Fires && slices.Contains([]string{"messages", "tokens", "unsummarized"}, s.Name)
		})
		far := slices.ContainsFunc(d.Triggers, func(s core.TriggerStatus) bool {
			return s.Name != "share" && s.Threshold > 0 && s.Value >= 4*s.Threshold // an import
		})
		hard := slices.ContainsFunc(d.Triggers, func(s core.TriggerStatus) bool { return s.Fires && s.Name == "unsummarized" }) && len(in.Run) <= 1
		late := hard || in.Policy.Timing == cw.TimingAfterRun && since && len(in.Run) == 1 && (!in.Busy || far)
		if in.Resting || in.Policy.Timing != cw.TimingInline && !late {
			rt.Fatalf("%s, resting %v, busy %v: %d of %d tokens, and a summary is waited for", in.Policy.Timing, in.Resting, in.Busy, d.Total, d.Budget.Usable)
		}
	})
}

// What is ordered ahead extends the summary in use, stays in front
// of the run, keeps the recent messages, and is not ordered while one is being made.
func TestWhatIsPrepared(t *testing.T) {
	every(t, func(rt *rapid.T, sh shot) {
		o := sh.d.Prepare
		if o == nil {
			return
		}
		in := sh.in
		if in.Policy.Timing != cw.TimingBackground || in.Busy || in.Resting || sh.d.Summarize != nil || sh.d.Activate != nil {
			rt.Fatalf("ordered ahead with timing %s, busy %v, resting %v: %+v", in.Policy.Timing, in.Busy, in.Resting, o)
		}
		if o.ThroughSeq <= in.Summary.ThroughSeq || len(in.Run) > 0 && o.ThroughSeq >= in.Run[0].Seq {
			rt.Fatalf("the order ends at %d, the summary at %d", o.ThroughSeq, in.Summary.ThroughSeq)
		}
		if left := len(in.History) - o.Messages; !crossed(sh.d) && left < in.Policy.MinRecent {
			rt.Fatalf("%d messages would be left, %d are kept", left, in.Policy.MinRecent)
		}
	})
}

// A prompt is smaller with the prepared summary, or it is not activated. Recalled passages do not
// count: what it covers may be quoted now, in the room that is free.
func TestActivationMakesThePromptSmaller(t *testing.T) {
	every(t, func(rt *rapid.T, sh shot) {
		before, after := sh.first.Total-recalledTokens(sh.first), sh.d.Total-recalledTokens(sh.d)
		if sh.first.Activate != nil && after >= before {
			rt.Fatalf("%d tokens before, %d after", before, after)
		}
	})
}

// window is the policy window at 128,000 tokens: usable 123,904, trigger 102,400,
// landing 64,000, prepared from 89,600 on.
func background(t *testing.T, change ...func(*cw.Policy)) cw.Policy {
	return preset(t, "window", append([]func(*cw.Policy){timed(cw.TimingBackground)}, change...)...)
}

// sized is a conversation with a prompt of exactly that many tokens: turns of 2,000
// tokens, and a run that has just begun.
func sized(p cw.Policy, tokens int) cw.Input {
	c := new(talk).turns((tokens-3_000)/2_000, 1_000)
	c.user(tokens - testSystem - cw.ListOverhead - c.tokens())
	return c.during(p, 128_000, int64(len(c.log)))
}

// Prepared over max(0.85 · trigger, landing + ¼ trigger), to the token, and the prompt stays unchanged.
func TestPreparedNearTheTrigger(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		policy cw.Policy
		at     int
	}{
		{"landing + a quarter", background(t), 89_600},
		{"0.85 of the trigger", background(t, func(p *cw.Policy) { p.LandAt = 0.5 }), 87_040},
		{"not over the trigger", background(t, func(p *cw.Policy) { p.LandAt = 0.9 }), 102_400},
	} {
		for over := range 2 {
			in := sized(tt.policy, tt.at+over)
			d, state := cw.Plan(in)
			if got := d.Prepare != nil; got != (over == 1) {
				t.Errorf("%s, %d over: prepares %v", tt.name, over, got)
			}
			if d.Summarize != nil || d.Compacted || string(state.Encode()) != "{}" || d.Total != tt.at+over {
				t.Errorf("%s, %d over: got %d tokens, rungs %v, state %s, want the prompt as it was", tt.name, over, d.Total, d.Rungs, state.Encode())
			}
		}
	}
}

// What is prepared is what an inline summary would cover when the trigger is
// crossed: the prompt lands at the landing point then, not above it.
func TestPreparedLandsWhenTheTriggerIsCrossed(t *testing.T) {
	t.Parallel()
	p := background(t)
	d, _ := cw.Plan(sized(p, 90_000))
	if d.Prepare == nil {
		t.Fatal("nothing is prepared")
	}
	in := sized(p, 103_000)
	in.Versions = []core.SummaryVersion{{Version: 1, ThroughSeq: d.Prepare.ThroughSeq, Tokens: d.Prepare.Limit, Messages: d.Prepare.Messages}}
	d, state := cw.Plan(in)
	if d.Activate == nil || d.Activate.Version != 1 || d.Activate.Trigger != "share" || d.Summarize != nil {
		t.Fatalf("got %+v and order %+v, want the prepared summary put to use", d.Activate, d.Summarize)
	}
	in = in.Activated(d.Activate.SummaryVersion)
	in.State = state
	d, state = cw.Plan(in)
	if d.Summarize != nil || d.Prepare != nil || !d.Compacted || d.Total > d.Budget.Landing+1_000 || d.Total < d.Budget.Landing-4_000 {
		t.Errorf("landed at %d, want about %d; order %+v, ahead %+v", d.Total, d.Budget.Landing, d.Summarize, d.Prepare)
	}
	if state.Landed == nil || state.Landed.Tokens != d.Total {
		t.Errorf("got state %s, want where it landed", state.Encode())
	}
}

// A prepared summary that would make the prompt larger, with pinned messages that it
// covers, is not activated.
func TestActivationThatBringsNothing(t *testing.T) {
	t.Parallel()
	c := new(talk).turns(2, 60).turns(52, 1_000).pin(1, 2, 3, 4)
	in := c.during(background(t), 128_000, int64(len(c.log)-1))
	in.Versions = []core.SummaryVersion{{Version: 1, ThroughSeq: 4, Tokens: 50, Messages: 4}}
	if d, _ := cw.Plan(in); !crossed(d) || d.Activate != nil || d.Prepare == nil {
		t.Errorf("got %+v and order %+v, want another one prepared", d.Activate, d.Prepare)
	}
}

// Count triggers have their point at 85 %, too (B1, R1, R3).
func TestPreparedNearCountTriggers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		policy cw.Policy
		turns  int
		want   string
		keeps  int
	}{
		{"24 of 30", preset(t, "budget", timed(cw.TimingBackground)), 12, "", 0},
		{"26 of 30", preset(t, "budget", timed(cw.TimingBackground)), 13, "messages", 6},
		{"12 of more than 15", preset(t, "sliding", timed(cw.TimingBackground)), 6, "", 0},
		{"14 of more than 15", preset(t, "sliding", timed(cw.TimingBackground)), 7, "messages", 10},
		{"42 of 50, whatever is set", preset(t, "sliding", timed(cw.TimingBackground), manual), 21, "", 0},
		{"44 of 50, whatever is set", preset(t, "sliding", timed(cw.TimingBackground), manual), 22, "unsummarized", 10},
	}
	for _, tt := range tests {
		c := new(talk).turns(tt.turns, 100).user(10)
		d, _ := cw.Plan(c.during(tt.policy, 128_000, int64(len(c.log))))
		if tt.want == "" {
			if d.Prepare != nil {
				t.Errorf("%s: got %+v, want nothing prepared", tt.name, d.Prepare)
			}
			continue
		}
		if d.Prepare == nil || d.Prepare.Trigger != tt.want || 2*tt.turns-d.Prepare.Messages != tt.keeps || d.Summarize != nil {
			t.Errorf("%s: got %+v, want one for %q that keeps %d messages", tt.name, d.Prepare, tt.want, tt.keeps)
		}
	}
	c := new(talk).turns(60, 1_000).user(10)
	k := preset(t, "budget", timed(cw.TimingBackground), func(p *cw.Policy) { p.MaxMessages, p.MaxTokens = 0, 128_000 })
	in := c.during(k, 1_000_000, int64(len(c.log)))
	if d, _ := cw.Plan(in); d.Prepare == nil || d.Prepare.Trigger != "tokens" || 128_000-1_000*d.Prepare.Messages > 80_000 {
		t.Errorf("120,000 of 128,000 tokens: got %+v, want one that lands at 80,000 when K is reached", d.Prepare)
	}
}

// Where old tool results can be masked instead, no summary is prepared.
func TestNothingPreparedWhereMaskingSuffices(t *testing.T) {
	t.Parallel()
	c := new(talk).turns(8, 2_000)
	for range 3 {
		c.user(100).round(20_000).answer(100)
	}
	c.user(100)
	in := c.during(background(t), 128_000, int64(len(c.log)))
	if d, _ := cw.Plan(in); d.Total < 89_600 || d.Total > 102_400 || d.Prepare != nil {
		t.Errorf("got %d tokens and %+v, want nothing prepared", d.Total, d.Prepare)
	}
}

// does says in a word what a decision does about summaries.
func does(d cw.Decision) string {
	switch {
	case d.Floor != nil:
		return "refuses"
	case d.Activate != nil:
		return "activates"
	case d.Summarize != nil:
		return "summarizes"
	case d.Prepare != nil:
		return "prepares"
	default:
		return "sends"
	}
}

// R4, B1, B5: what each timing does at each size, at each moment. A prompt of 130,000 tokens does not fit;
// over 102,400 is over the trigger, over 89,600 near it.
func TestTimings(t *testing.T) {
	t.Parallel()
	ready := func(in *cw.Input) {
		in.Versions = []core.SummaryVersion{{Version: 1, ThroughSeq: 40, Tokens: 500, Messages: 40}}
	}
	busy := func(in *cw.Input) { in.Busy = true }
	resting := func(in *cw.Input) { in.Resting = true }
	after := func(in *cw.Input) { in.Phase = cw.AfterRun }
	// a prepared one that belongs to another branch
	elsewhere := func(in *cw.Input) {
		in.Versions = []core.SummaryVersion{{Version: 1, ThroughSeq: 41, Tokens: 500, Messages: 41}}
	}
	const under, near, over, burst = 80_000, 95_000, 110_000, 130_000
	tests := []struct {
		name                         string
		change                       []func(*cw.Input)
		tokens                       int
		inline, afterRun, background string
	}{
		{"under", nil, under, "sends", "sends", "sends"},
		{"under, one is ready", []func(*cw.Input){ready}, under, "sends", "sends", "sends"},
		{"near", nil, near, "sends", "sends", "prepares"},
		{"near, one is made", []func(*cw.Input){busy}, near, "sends", "sends", "sends"},
		{"near, one is ready", []func(*cw.Input){ready}, near, "sends", "sends", "sends"},
		{"near, resting", []func(*cw.Input){resting}, near, "sends", "sends", "sends"},
		{"over", nil, over, "summarizes", "sends", "prepares"},
		{"over, one is made", []func(*cw.Input){busy}, over, "summarizes", "sends", "sends"},
		{"over, one is ready", []func(*cw.Input){ready}, over, "activates", "activates", "activates"},
		{"over, one of another branch is ready", []func(*cw.Input){elsewhere}, over, "summarizes", "sends", "prepares"},
		{"over, resting", []func(*cw.Input){resting}, over, "sends", "sends", "sends"},
		{"over, resting, one is ready", []func(*cw.Input){resting, ready}, over, "activates", "activates", "activates"},
		{"burst", nil, burst, "summarizes", "summarizes", "summarizes"},
		{"burst, one is made", []func(*cw.Input){busy}, burst, "summarizes", "summarizes", "summarizes"},
		{"burst, one is ready", []func(*cw.Input){ready}, burst, "activates", "activates", "activates"},
		{"burst, resting", []func(*cw.Input){resting}, burst, "summarizes", "summarizes", "summarizes"},
		{"after the run, under", []func(*cw.Input){after}, under, "sends", "sends", "sends"},
		{"after the run, near", []func(*cw.Input){after}, near, "sends", "sends", "prepares"},
		{"after the run, over", []func(*cw.Input){after}, over, "sends", "summarizes", "prepares"},
		{"after the run, over, one is ready", []func(*cw.Input){after, ready}, over, "activates", "activates", "activates"},
		{"after the run, over, resting", []func(*cw.Input){after, resting}, over, "sends", "sends", "sends"},
		{"after the run, burst", []func(*cw.Input){after}, burst, "sends", "summarizes", "prepares"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for timing, want := range map[cw.Timing]string{
				cw.TimingInline: tt.inline, cw.TimingAfterRun: tt.afterRun, cw.TimingBackground: tt.background,
			} {
				in := sized(preset(t, "window", timed(timing)), tt.tokens)
				for _, change := range tt.change {
					change(&in)
				}
				d, state := cw.Plan(in)
				compare.Equal(t, string(timing), want, does(d))
				if want == "sends" && (string(state.Encode()) != "{}" || d.Compacted || len(d.Rungs) > 0) {
					t.Errorf("%s: got state %s, rungs %v, want nothing changed", timing, state.Encode(), d.Rungs)
				}
			}
		})
	}
}

// R4, B5: a count trigger that is still crossed when a run begins is seen to before
// the run, unless another worker does it; not in the middle of one.
func TestAfterRunCatchesUp(t *testing.T) {
	t.Parallel()
	input := func(messages int, change func(*cw.Input)) cw.Input {
		c := new(talk).turns(messages/2, 100).user(10).round(20)
		in := c.during(preset(t, "sliding"), 128_000, int64(messages+1))
		in.Run = in.Run[:1]
		change(&in)
		return in
	}
	for name, tt := range map[string]struct {
		messages int
		change   func(*cw.Input)
		want     string
	}{
		"14 messages":                            {14, func(*cw.Input) {}, "sends"},
		"16 messages":                            {16, func(*cw.Input) {}, "summarizes"},
		"somebody is at it":                      {16, func(in *cw.Input) { in.Busy = true }, "sends"},
		"imported, somebody is at it":            {400, func(in *cw.Input) { in.Busy = true }, "summarizes"},
		"over the hard limit, somebody is at it": {52, func(in *cw.Input) { in.Busy = true }, "summarizes"},
		"over it, in a run":                      {52, func(in *cw.Input) { in.Busy, in.Run = true, append(in.Run, in.Run[0], in.Run[0]) }, "sends"},
		"over it, the model rests":               {52, func(in *cw.Input) { in.Resting = true }, "sends"},
		"the model rests":                        {16, func(in *cw.Input) { in.Resting = true }, "sends"},
		"in a run":                               {16, func(in *cw.Input) { in.Run = append(in.Run, in.Run[0], in.Run[0]) }, "sends"},
		"after the run":                          {16, func(in *cw.Input) { in.Phase, in.Run = cw.AfterRun, nil }, "summarizes"},
		"after the run, fewer":                   {14, func(in *cw.Input) { in.Phase, in.Run = cw.AfterRun, nil }, "sends"},
	} {
		if d, _ := cw.Plan(input(tt.messages, tt.change)); does(d) != tt.want {
			t.Errorf("%s: %s, want %s", name, does(d), tt.want)
		}
	}
}

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
