package tokens_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/app/core/tokens"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// W9: the common models, by longest prefix of the normalized name.
func TestLookup(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"gemini-1.5-pro":    1_000_000,
		"claude-3-5-sonnet": 200_000,
		"  GPT-4O ":         128_000,
		"gpt-4":             8_192,
		"gpt-3.5-turbo":     16_385,
		"demo":              8_192,

		"us.anthropic.claude-3-5-sonnet-20241022":   200_000,
		"claude-3.5-sonnet":                         200_000,
		"ft:gpt-4o-mini-2024-07-18:acme/team:x:id9": 128_000,

		"anthropic.claude-3-5-sonnet-20241022-v2:0":                                       200_000,
		"eu.anthropic.claude-sonnet-4-20250514-v1:0":                                      200_000,
		"arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-1-v1:0": 200_000,
		"publishers/google/models/gemini-2.5-flash-001":                                   1_048_576,
		"openrouter/anthropic/claude-3.5-sonnet:beta":                                     200_000,
		"us.meta.llama3-1-8b-instruct-v1:0":                                               128_000,
		"meta-llama/Meta-Llama-3.1-8B-Instruct":                                           128_000,

		"gpt-4-1106-preview": 128_000, // is not gpt-4.1
		"gpt-4.1":            1_047_576,
		"gpt-4-1-mini":       1_047_576,
		"gpt-4-32k-0613":     32_768,
		"gpt-3.5-turbo-0613": 4_096,
		"o1-mini":            128_000,
		"gpt-5":              272_000,
		"gpt-5.5":            922_000,
		"claude-opus-4.8":    1_000_000,
		"claude-2.1":         200_000,
		"claude-2-100k":      100_000, // is not claude-2.1

		"llama3":            8_192,
		"llama3.1:8b":       128_000,
		"llama3.2":          128_000,
		"llama2:13b-chat":   4_096,
		"mixtral:8x7b":      32_768,
		"mistral-nemo":      128_000,
		"qwen2.5:14b":       32_768,
		"deepseek-r1:7b":    128_000,
		"phi3:mini":         4_096,
		"gemma3:27b":        131_072,
		"command-r-plus":    128_000,
		"codellama:7b-code": 16_384,
	} {
		if got, ok := tokens.Lookup(name); !ok || got.Window != want {
			t.Errorf("Lookup(%q): got window %d, known %t, want %d", name, got.Window, ok, want)
		}
	}
}

// W9: a model that nobody knows has a small window.
func TestUnknown(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"acme-1", ""} {
		got, known := tokens.Assume(name)
		compare.Equal(t, fmt.Sprintf("Assume(%q): known, window, factor", name), []any{false, 8192, float64(1)}, []any{known, got.Window, got.Factor})
	}
}

// Every row is in the form that lookups have, and sensible.
func TestBuiltinRows(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, row := range tokens.Builtin() {
		if got, ok := tokens.Lookup(row.Name); !ok || got != row {
			t.Errorf("row %q: Lookup gives %+v", row.Name, got)
		}
		compare.True(t, !seen[row.Name], "row %q is there twice", row.Name)
		seen[row.Name] = true
		compare.True(t, row.Window >= 2048 && row.MaxOutput <= row.Window && row.Factor >= 0.5 && row.Factor <= 4, "row %+v: a number is out of range", row)
	}
}

// The longest prefix wins, and spelling does not matter.
func TestLookupProperty(t *testing.T) {
	t.Parallel()
	rows := tokens.Builtin()
	seed.Check(t, func(rt *rapid.T) {
		row := rapid.SampledFrom(rows).Draw(rt, "row")
		name := row.Name + rapid.SampledFrom([]string{"", "-20250101", "-latest", "-2025-01-01-preview", "@001"}).Draw(rt, "suffix")
		plain, ok := tokens.Lookup(name)
		if !ok || len(plain.Name) < len(row.Name) {
			rt.Fatalf("Lookup(%q): got %q, want %q or a longer row", name, plain.Name, row.Name)
		}
		spelled := rapid.SampledFrom([]string{"", "openai/", "models/", "us.anthropic.", "vendor/team/", "ft:"}).Draw(rt, "prefix") + strings.ToUpper(name)
		if strings.HasPrefix(spelled, "ft:") {
			spelled += ":acme::id"
		}
		if got, _ := tokens.Lookup(spelled); got != plain {
			rt.Fatalf("Lookup(%q): got %q, want %q as for %q", spelled, got.Name, plain.Name, name)
		}
	})
}

// A window that the provider told holds for the model, over a restart,
// for a day; a larger prompt that went through proves that it is none.
func TestToldWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := tokens.NewCalibrator(prior(1))
		c.Told("m", "", 8192)
		c.Told("tiny", "", 100) // no window of a model in use
		if m, tiny, other := c.Window("m"), c.Window("tiny"), c.Window("other"); m != 8192 || tiny != 0 || other != 0 {
			t.Fatalf("got windows %d, %d and %d, want 8192, 0 and 0", m, tiny, other)
		}
		c.Fitted("m", 8192)
		c.Fitted("other", 9000)
		rows := c.Changed()
		must.True(t, len(rows) == 1 && rows[0].Window == 8192 && rows[0].WindowAt != nil && c.Window("m") == 8192, "got %+v, want the window of m alone", rows)
		restarted := tokens.NewCalibrator(prior(1))
		restarted.Restore(rows)
		got := restarted.Estimate("m", "")
		compare.Equal(t, "restarted: window, factor", []any{8192, float64(1.1)}, []any{restarted.Window("m"), got.Factor})
		time.Sleep(24 * time.Hour)
		compare.Equal(t, "a day later", 8192, restarted.Window("m"))
		time.Sleep(time.Second)
		compare.Equal(t, "after a day: want it is tried again", 0, restarted.Window("m"))
		c.Told("m", "", 4096)
		c.Fitted("m", 4097)
		if rows := c.Changed(); c.Window("m") != 0 || len(rows) != 1 || rows[0].Window != 0 {
			t.Errorf("after a larger prompt: got window %d, to be saved %+v, want it forgotten", c.Window("m"), rows)
		}
	})
}

// A row of the database that makes no sense teaches nothing but its window.
func TestRestoreKeepsTheWindow(t *testing.T) {
	t.Parallel()
	for _, factor := range []float64{0, -1, math.NaN(), math.Inf(-1)} {
		c := tokens.NewCalibrator(prior(1))
		c.Restore([]core.Calibration{{Model: "m", Factor: factor, Deviation: 0.5, Samples: 9, Window: 5000, WindowAt: new(core.Now())}})
		got := c.Estimate("m", "")
		compare.Equal(t, fmt.Sprintf("factor %g: want nothing but the window", factor), []any{false, 0, float64(1.1), 5000}, []any{got.Measured, got.Samples, got.Factor, c.Window("m")})
		c.Observe("m", "", 1000, 1000)
		compare.Equal(t, fmt.Sprintf("factor %g: after a call", factor), 1, c.Estimate("m", "").Samples)
	}
}

// A window that was only supposed is believed in its session alone, as far as nothing that was accepted
// before speaks against it, and never below a quarter of what was refused, or 8,192.
func TestLearnWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ fitted, window, refused, want int }{
		"nothing accepted before": {0, 10_000, 20_000, 10_000},
		"less accepted before":    {4_000, 10_000, 20_000, 10_000},
		"more accepted before":    {14_000, 10_000, 20_000, 14_000},
		"as much as was refused":  {20_000, 10_000, 20_000, 0},
		"more than was refused":   {60_000, 10_000, 20_000, 0},
		"less than a quarter":     {0, 1_649, 13_192, 3_298},
		"far less":                {0, 1_649, 100_000, 8_192},
		"smaller than any model":  {0, 600, 1_200, 1_024},
	} {
		calibrator := tokens.NewCalibrator(prior(1))
		calibrator.Fitted("m", c.fitted)
		calibrator.Fitted("m", c.fitted/2)
		calibrator.LearnWindow("m", "s", c.window, c.refused)
		got := calibrator.SessionWindow("m", "s")
		compare.Equal(t, name+": window, the largest fit", []any{c.want, c.fitted}, []any{got, calibrator.LargestFit("m")})
		if all, other := calibrator.Window("m"), calibrator.SessionWindow("m", "other"); all != 0 || other != 0 {
			t.Errorf("%s: got the windows %d and %d for others, want none", name, all, other)
		}
	}
}
