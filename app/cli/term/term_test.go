package term_test

import (
	"strings"
	"testing"
	"time"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// W9: the source of the window is shown unless it is the model's known window.
func TestDrawWindow(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"provider": "window 8,192, learned from a provider error (context_window in models overrides it)\n",
		"default":  "window 8,192, assumed for an unknown model (context_window in models sets it)\n",
		"model":    "", "configuration": "",
	} {
		var b strings.Builder
		term.DrawContext(&b, core.ContextReport{Model: "m", Policy: "window", Window: 8192, WindowFrom: from, Calibration: core.CalibrationView{Deviation: 0.15}}, time.Now(), 0)
		if got := b.String(); want != "" && !strings.Contains(got, want) || want == "" && strings.Contains(got, "window 8,192") {
			t.Errorf("%s: got\n%s\nwant %q", from, got, want)
		}
		if !strings.Contains(b.String(), "estimated ± 15%") {
			t.Errorf("%s: the report does not say how far the estimate may be off:\n%s", from, b.String())
		}
	}
}
