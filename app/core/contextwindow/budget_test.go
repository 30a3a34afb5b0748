package contextwindow_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	cw "bobbin/app/core/contextwindow"
	"bobbin/tests/compare"
	"bobbin/tests/seed"
)

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
