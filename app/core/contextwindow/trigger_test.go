package contextwindow_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
	"bobbin/tests/compare"
	"bobbin/tests/seed"
)

// W5: at the trigger everything is sent verbatim; one token more and
// the oldest messages are summarized. C2 for base and ratio.
func TestShareTriggerToTheToken(t *testing.T) {
	t.Parallel()
	tests := []struct {
		preset string
		window int
		at     int
	}{
		{"window", 128_000, 102_400},
		{"window", 8_192, 6_144}, // 0.8 of the window is above usable
		{"budget", 128_000, 102_400},
		{"sliding", 128_000, 102_400},
		{"ratio", 1_000_000, 144_000}, // 0.8 of 180,000
	}
	for _, tt := range tests {
		t.Run(tt.preset, func(t *testing.T) {
			t.Parallel()
			policy := preset(t, tt.preset, inline, func(p *cw.Policy) { p.MaxTokens = 0 })
			for over := range 2 {
				c := new(talk).turns(3, 700)
				rest := tt.at - testSystem - cw.ListOverhead - c.tokens()
				c.user(rest + over)
				in := c.during(policy, tt.window, 7)
				d, state := cw.Plan(in)
				if got := trigger(t, d, "share"); got.Value != tt.at+over || got.Threshold != tt.at || got.Fires != (over == 1) {
					t.Errorf("%d over: got %+v, want %d of %d", over, got, tt.at+over, tt.at)
				}
				if got := d.Summarize != nil; got != (over == 1) {
					t.Errorf("%d over: summarizes %v, reasons %q", over, got, d.Reasons)
				}
				if over == 0 && (d.Compacted || len(d.Rungs) > 0 || string(state.Encode()) != "{}") {
					t.Errorf("at the trigger: got rungs %v, state %s, want nothing done", d.Rungs, state.Encode())
				}
			}
		})
	}
}

// B1: N messages or K tokens, whichever comes first; of N and the sliding window the lower one. B5:
// neither fires below min_recent_messages + 4 messages; the prompt must fit all the same. R3: 50
// unsummarized messages force a summary, auto_summarize included.
func TestTriggersSinceTheCursor(t *testing.T) {
	t.Parallel()
	budget, forced := preset(t, "budget"), preset(t, "sliding", manual)
	quick := preset(t, "budget", func(p *cw.Policy) { p.MaxMessages = 8 })
	joined := preset(t, "budget", func(p *cw.Policy) { p.WindowMessages = 20 })
	tests := []struct {
		name             string
		policy           cw.Policy
		window           int
		messages, tokens int
		trigger          string
		added            int // messages that the summary takes over
	}{
		{"28 of 30 messages", budget, 1_000_000, 28, 100, "", 0},
		{"30 messages", budget, 1_000_000, 30, 100, "messages", 24},
		{"K first", budget, 1_000_000, 12, 11_000, "tokens", 6}, // 132,000; lands at 0.625 · 128,000 = 80,000
		{"both at once, the deeper cut", budget, 1_000_000, 30, 10_000, "messages", 24},
		{"just under K", budget, 1_000_000, 16, 7_999, "", 0},
		{"over K, of 8", budget, 1_000_000, 8, 20_000, "", 0},
		{"over K, of 10", budget, 1_000_000, 10, 20_000, "tokens", 6},
		{"8 of N 8", quick, 1_000_000, 8, 100, "", 0},
		{"10 of N 8", quick, 1_000_000, 10, 100, "messages", 4},
		{"8 that do not fit", budget, 8_192, 8, 2_000, "share", 6},
		{"20 of more than 20", joined, 128_000, 20, 50, "", 0},
		{"21 of more than 20", joined, 128_000, 21, 50, "messages", 14},
		{"49 of 50", forced, 128_000, 49, 50, "", 0},
		{"50", forced, 128_000, 50, 50, "unsummarized", 40},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := new(talk).turns(tt.messages/2, tt.tokens)
			if tt.messages%2 == 1 {
				c.user(tt.tokens)
			}
			d, _ := cw.Plan(c.between(tt.policy, tt.window))
			if o := d.Summarize; (o != nil) != (tt.trigger != "") || o != nil && (o.Trigger != tt.trigger || o.Messages != tt.added) {
				t.Fatalf("got %+v, want %q over %d messages", o, tt.trigger, tt.added)
			}
		})
	}
}

// R1: over 15 messages the older ones are summarized and the last 10 kept.
func TestSlidingKeepsTen(t *testing.T) {
	t.Parallel()
	c := new(talk).turns(7, 50).user(50)
	if d, _ := cw.Plan(c.between(preset(t, "sliding"), 128_000)); d.Summarize != nil {
		t.Errorf("15 messages: got %+v, want no order", d.Summarize)
	}
	d, _ := cw.Plan(c.answer(50).between(preset(t, "sliding"), 128_000))
	if d.Summarize == nil {
		t.Fatal("16 messages: got no order, want one")
	}
	o := *d.Summarize
	if o.Messages != 6 || o.FromSeq != 1 || o.ThroughSeq != 6 || o.FromID != c.log[0].ID || o.ThroughID != c.log[5].ID || o.Trigger != "messages" || o.Rung != 2 {
		t.Errorf("got %+v, want #1 to #6", o)
	}
	// R2: asks for 300 and is held to 500; never to more than half of what it replaces.
	compare.Equal(t, "limit, asks for, replaces: want 150, 150, 300", []int{150, 150, 300}, []int{o.Limit, o.AskFor, o.Tokens})
	// An old summary is not squeezed for a few new messages.
	in := c.between(preset(t, "sliding"), 128_000)
	in.Summary = core.SummaryVersion{Version: 1, Tokens: 450}
	if d, _ = cw.Plan(in); d.Summarize == nil || d.Summarize.Limit != 500 || d.Summarize.Tokens != 750 {
		t.Errorf("got %+v, want a limit of 500 for 750 tokens", d.Summarize)
	}
	d, _ = cw.Plan(new(talk).turns(8, 500).between(preset(t, "sliding"), 128_000))
	if d.Summarize == nil || d.Summarize.Limit != 500 || d.Summarize.AskFor != 300 {
		t.Errorf("got %+v, want a limit of 500 and 300 asked for", d.Summarize)
	}
}

// C6, B5: /summarize keeps the recent messages if that leaves anything, else the
// last turn; there is nothing to do for one turn, an empty log, or a second time.
func TestForce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		preset  string
		turns   int
		through int64 // 0 = no order
	}{
		{"window", 5, 6}, {"budget", 4, 2}, {"sliding", 3, 4}, {"off", 3, 4}, {"window", 2, 2}, {"window", 1, 0}, {"window", 0, 0},
	}
	for _, tt := range tests {
		in := new(talk).turns(tt.turns, 20).between(preset(t, tt.preset), 128_000)
		in.Force = true
		d, _ := cw.Plan(in)
		switch {
		case tt.through == 0 && (d.Summarize != nil || d.Compacted || len(d.Reasons) == 0):
			t.Errorf("%s, %d turns: got %+v, reasons %q, want no order and a reason", tt.preset, tt.turns, d.Summarize, d.Reasons)
		case tt.through > 0 && (d.Summarize == nil || d.Summarize.ThroughSeq != tt.through || d.Summarize.Trigger != "manual"):
			t.Errorf("%s, %d turns: got %+v, want a manual order through #%d", tt.preset, tt.turns, d.Summarize, tt.through)
		}
	}
}

// Failures of other products that the plan rules out, numbered.

// W12: in mid-session from a 128K to an 8K model, in any policy:
// the next prompt fits, and back on the large one all that is left is there again.
func TestRow15SwitchToASmallerWindow(t *testing.T) {
	t.Parallel()
	for _, name := range cw.PresetNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := new(talk)
			for range 6 {
				c.turns(1, 1_500).user(200).round(2_000, 500).answer(300)
			}
			c.user(100)
			in := c.during(preset(t, name, func(p *cw.Policy) { p.MaxMessages, p.WindowMessages = 0, 0 }), 128_000, int64(len(c.log)))
			d, state := cw.Plan(in)
			whole := fits(t, c, in, d, d.Budget.Trigger)
			if len(whole.Messages) != len(c.log) || d.Compacted {
				t.Fatalf("on 128K: got %d messages, compacted %v, want all %d as they are", len(whole.Messages), d.Compacted, len(c.log))
			}

			in.Model.Window, in.State = 8_192, state
			d, state = cw.Plan(in)
			if d.Summarize != nil {
				in = in.After(*d.Summarize, d.Summarize.Limit, d.Summarize.Messages)
				in.State = state
				d, state = cw.Plan(in)
			}
			fits(t, c, in, d, d.Budget.Landing)
			if !d.Compacted {
				t.Error("on 8K: nothing is to be stored")
			}

			in.Model.Window, in.State, in.Summarized = 128_000, state, false
			d, again := cw.Plan(in)
			p := fits(t, c, in, d, d.Budget.Trigger)
			if want := len(in.History) + 1; len(p.Messages) != want || places(d.History, d.Run)[core.PlaceVerbatim] != want {
				t.Errorf("back on 128K: got %v, want all %d verbatim", places(d.History, d.Run), want)
			}
			if diff := cmp.Diff(state, again); diff != "" || d.Compacted {
				t.Errorf("back on 128K: the state changed, so that the small model's prompt does:\n%s", diff)
			}
		})
	}
}

// The budget, number by number. W5, B2, B3, R2, C2.
func TestBudgetArithmetic(t *testing.T) {
	t.Parallel()
	tests := []struct {
		preset  string
		window  int
		output  int
		fixed   int
		reserve int // min(4096, maximum output, window / 4)
		trigger int // min(0.8 · base, usable)
		landing int // 0.625 · trigger
		summary int // the preset's limit, and never over 0.4 · landing
	}{
		{"window", 1_024, 0, 0, 256, 768, 480, 192},
		{"window", 2_048, 256, 0, 256, 1_638, 1_023, 409},
		{"window", 4_096, 0, 0, 1_024, 3_072, 1_920, 768},
		{"window", 8_192, 4_096, 0, 2_048, 6_144, 3_840, 800},
		{"window", 8_192, 512, 0, 512, 6_553, 4_095, 800},
		{"window", 16_385, 0, 0, 4_096, 12_289, 7_680, 800},
		{"window", 32_768, 8_192, 0, 4_096, 26_214, 16_383, 800},
		{"window", 128_000, 16_384, 0, 4_096, 102_400, 64_000, 2_560},
		{"window", 200_000, 8_192, 0, 4_096, 160_000, 100_000, 4_000},
		{"window", 1_000_000, 65_536, 0, 4_096, 800_000, 500_000, 8_000},

		{"budget", 128_000, 16_384, 3_904, 4_096, 102_400, 64_000, 25_600}, // 30 % of 120,000 is above 0.4 · landing
		{"budget", 128_000, 16_384, 93_904, 4_096, 102_400, 64_000, 9_000}, // 30 % of 30,000
		{"budget", 8_192, 0, 6_000, 2_048, 6_144, 3_840, 43},               // 30 % of 144
		{"budget", 8_192, 0, 9_000, 2_048, 6_144, 3_840, 1},                // nothing is available

		{"sliding", 128_000, 0, 0, 4_096, 102_400, 64_000, 500},
		{"sliding", 1_024, 0, 0, 256, 768, 480, 192},

		{"ratio", 1_000_000, 65_536, 0, 4_096, 144_000, 90_000, 2_000}, // base 180,000
		{"ratio", 200_000, 8_192, 0, 4_096, 144_000, 90_000, 2_000},
		{"ratio", 128_000, 8_192, 0, 4_096, 99_123, 61_951, 2_000}, // base is usable
		{"ratio", 8_192, 0, 0, 2_048, 4_915, 3_071, 1_228},

		{"off", 128_000, 8_192, 0, 4_096, 123_904, 77_440, 2_560}, // no share trigger: only what does not fit
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %d", tt.preset, tt.window), func(t *testing.T) {
			t.Parallel()
			got := preset(t, tt.preset).Budget(cw.Limits{Window: tt.window, MaxOutput: tt.output}, tt.fixed)
			want := cw.Budget{
				Window: tt.window, Reserve: tt.reserve, Usable: tt.window - tt.reserve, Trigger: tt.trigger,
				HasShare: tt.preset != "off", Landing: tt.landing, SummaryLimit: tt.summary,
			}
			if got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

// C2: target_context_tokens binds where it is below 0.625 · trigger. B3: with both, the smaller of
// max_summary_tokens and max_summary_share counts.
func TestBudgetBounds(t *testing.T) {
	t.Parallel()
	p := preset(t, "ratio", func(p *cw.Policy) { p.TargetContextTokens = 50_000 })
	compare.Equal(t, "landing: want 50000", 50_000, p.Budget(cw.Limits{Window: 1_000_000}, 0).Landing)
	for tokens, want := range map[int]int{5_000: 5_000, 20_000: 12_390} {
		p := preset(t, "budget", func(p *cw.Policy) { p.MaxSummaryTokens, p.MaxSummaryShare = tokens, 0.1 })
		compare.Equal(t, "summary limit with 10 %", want, p.Budget(cw.Limits{Window: 128_000}, 0).SummaryLimit)
	}
}

// On any window, from a token up: a compaction always has
// somewhere to land, and its summary leaves room for messages.
func TestBudgetNeverContradictsItself(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(rt *rapid.T) {
		p, err := cw.Preset(rapid.SampledFrom(cw.PresetNames()).Draw(rt, "preset"))
		if err != nil {
			rt.Fatal(err)
		}
		p.ResponseReserve = rapid.IntRange(1, 200_000).Draw(rt, "reserve")
		m := cw.Limits{Window: rapid.IntRange(16, 2_000_000).Draw(rt, "window"), MaxOutput: rapid.IntRange(0, 3_000_000).Draw(rt, "output")}
		b := p.Budget(m, rapid.IntRange(0, 100_000).Draw(rt, "fixed"))
		switch {
		case b.Reserve < 1 || b.Reserve > m.Window/4:
			rt.Fatalf("reserve %d of window %d", b.Reserve, m.Window)
		case b.Usable != m.Window-b.Reserve || b.Trigger > b.Usable:
			rt.Fatalf("usable %d, trigger %d of window %d", b.Usable, b.Trigger, m.Window)
		case b.Landing < 1 || b.Landing >= b.Trigger:
			rt.Fatalf("landing %d, trigger %d", b.Landing, b.Trigger)
		case b.SummaryLimit < 1 || b.SummaryLimit > b.Landing/2+1:
			rt.Fatalf("summary limit %d, landing %d", b.SummaryLimit, b.Landing)
		}
	})
}

// The output limit is min(maximum output, window − prompt), and what
// the prompt's estimate may be off is taken from it.
func TestMaxOutput(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		output int
		margin float64
		user   int
		limit  int
		want   int
	}{
		{"the model's own", 1_000, 0, 100, 0, 1_000},
		{"what is left", 100_000, 0, 3_977, 0, 8_192 - 4_000},
		{"what is left, with doubt", 100_000, 0.1, 3_977, 0, 8_192 - 4_400},
		{"not known: the reserve", 0, 0, 100, 0, 4_096},
		{"more doubt than room", 100_000, 3, 3_977, 0, 1_024},
		{"the provider refused it once", 100_000, 0, 100, 5_000, 2_048},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := new(talk).user(tt.user)
			in := c.during(preset(t, "window"), 8_192, 1)
			in.Model.MaxOutput, in.Margin, in.Cap = tt.output, tt.margin, tt.limit
			if d, _ := cw.Plan(in); d.MaxOutput != tt.want {
				t.Errorf("prompt of %d: got %d, want %d", d.Total, d.MaxOutput, tt.want)
			}
		})
	}
}
