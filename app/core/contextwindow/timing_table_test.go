package contextwindow_test

import (
	"testing"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
)

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

// R4, B1, B5: what each timing does at each size, at each moment.
// A prompt of 130,000 tokens does not fit; over 102,400 is over the trigger, over
// 89,600 near it.
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
				if got := does(d); got != want {
					t.Errorf("%s: %s, want %s", timing, got, want)
				}
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

// A prepared summary that covers too little is activated, and the next
// one is prepared; where the prompt still does not fit, it is made immediately.
func TestPreparedCoversTooLittle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		tokens int
		want   string
	}{
		{"it still fits", 120_000, "prepares"},
		{"it does not fit", 140_000, "summarizes"},
	} {
		in := sized(background(t), tt.tokens)
		in.Versions = []core.SummaryVersion{{Version: 1, ThroughSeq: 8, Tokens: 500, Messages: 8}}
		d, state := cw.Plan(in)
		if does(d) != "activates" {
			t.Fatalf("%s: %s, want the prepared one put to use", tt.name, does(d))
		}
		in = in.Activated(*d.Activate)
		in.State = state
		d, state = cw.Plan(in)
		if does(d) != tt.want || state.Landed != nil {
			t.Errorf("%s: then %s, state %s, want it to go on: %s", tt.name, does(d), state.Encode(), tt.want)
		}
		if tt.want == "prepares" && (!d.Compacted || len(d.Reasons) < 2) {
			t.Errorf("%s: compacted %v, reasons %q, want it said that it has not landed", tt.name, d.Compacted, d.Reasons)
		}
		in.State, in.Summarized, in.Phase = state, false, cw.AfterRun
		if d, _ := cw.Plan(in); tt.want == "prepares" && does(d) != "prepares" {
			t.Errorf("%s: after the run %s, want the next one prepared", tt.name, does(d))
		}
	}
}

// A user's own summary takes the place of a prepared one.
func TestForcedSummaryDoesNotWait(t *testing.T) {
	t.Parallel()
	in := sized(background(t), 110_000)
	in.Force, in.Resting, in.Busy = true, true, true
	in.Versions = []core.SummaryVersion{{Version: 1, ThroughSeq: 40, Tokens: 500, Messages: 40}}
	if d, _ := cw.Plan(in); does(d) != "summarizes" || d.Summarize.Trigger != "manual" {
		t.Errorf("%s, want a summary at once", does(d))
	}
}
