package e2e_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// A switch in mid-session from a window of 128K to
// one of 8K, and back (W12). The small model's tokenizer is not
// known: in the second case it is so far off that a prompt is refused.
func TestSwitch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		overcount float64
		refused   bool
	}{
		{"15 % more", 1.15, false},
		{"three times as much", 3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			small := apptest.NewProvider(t, provider.Options{Window: 8192, Overcount: c.overcount})
			large := apptest.NewProvider(t, provider.Options{Window: 128_000, Overcount: 1.15})
			h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("large", 128_000, 4096, large), apptest.WithModel("small", 8192, 2048, small))
			id, w := apptest.NewSession(t, h.Client, core.Session{}), apptest.NewWriter(3)
			step := func(what, model string, p *provider.Server) core.ContextReport {
				question := what + ". " + w.Sentences(5)
				got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: question, Model: model})
				if want := "answer to: " + question; got.Answer.Content != want {
					t.Errorf("%s: got the answer %.80q, want %.80q", what, got.Answer.Content, want)
				}
				r := reported(t, h.Client, got.Run.ID)
				return r
			}
			for n := range 30 {
				apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: fmt.Sprintf("Note %d. ", n) + w.Sentences(20)})
			}
			before := step("on the large model", "", large)
			if before.Used < 12_000 {
				t.Errorf("got a prompt of %d tokens before the switch, want one that cannot fit the small model", before.Used)
			}
			on := step("first on the small one", "small", small)
			step("second on the small one", "small", small)
			back := step("back on the large one", "", large)

			if on.Window != 8192 || on.Used > on.Usable || on.Coverage.Summarized == 0 {
				t.Errorf("on the small model: got %+v, want a summary and a prompt that fits", on)
			}
			if back.Window != 128_000 || back.Coverage.Lost != 0 {
				t.Errorf("back on the large model: got %+v, want its own window", back)
			}
			if got := small.Rejected() > 0; got != c.refused {
				t.Errorf("got %d prompts refused, want some: %v", small.Rejected(), c.refused)
			}
			if got := len(apptest.ListMessages(t, h.Client, id)); got != 2*34 {
				t.Errorf("got %d messages in the log, want %d", got, 2*34)
			}
			contextOf(t, h.Client, id)
		})
	}
}

// reported returns the context report of a run's last model call.
func reported(t testing.TB, c *client.Client, id core.RunID) core.ContextReport {
	t.Helper()
	run, err := c.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var r core.ContextReport
	if err := json.Unmarshal(run.Context, &r); err != nil {
		t.Fatalf("run's context %q: %v", run.Context, err)
	}
	return r
}
