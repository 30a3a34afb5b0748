package e2e_test

import (
	"fmt"
	"math"
	"net/http"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// A run that ends within the grace period of a shutdown has measured its model: the next start knows it.
func TestShutdownKeepsCalibration(t *testing.T) {
	t.Parallel()
	p, g := newHolding(t)
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 8192, 2048, p))
	id, _ := held(t, h, g)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		h.Stop()
	}()
	awaitReadiness(t, h, http.StatusServiceUnavailable, "")
	g.open()
	<-stopped
	h.Start()
	if got := report(t, h.Client, id).Calibration.Samples; got != 1 {
		t.Errorf("got %d samples after the restart, want that of the run", got)
	}
}

// ruler is how a provider counts, and the conversations that are held with it.
type ruler struct {
	name  string
	count func(provider.Received) int
	talks []func(w *apptest.Writer, n int) string // one conversation each, in turn
}

func inEnglish(w *apptest.Writer, n int) string { return w.Sentences(1 + n%5) }
func inChinese(w *apptest.Writer, n int) string { return w.Chinese(3 + n%5) }

func rulers(t *testing.T) []ruler {
	t.Helper()
	ours, err := provider.Cl100k()
	if err != nil {
		t.Fatal(err)
	}
	o200k, err := provider.O200k()
	if err != nil {
		t.Fatal(err)
	}
	scripted := provider.ByScript(ours, 0.6)
	byBook := func(r provider.Received) int { return provider.ByTheBook(r, ours) }
	byScript := func(r provider.Received) int { return provider.ByTheBook(r, scripted) }
	times := func(factor float64) func(provider.Received) int {
		return func(r provider.Received) int { return int(math.Ceil(factor * float64(byBook(r)))) }
	}
	type talks = []func(*apptest.Writer, int) string
	return []ruler{
		{"as we do", byBook, talks{inEnglish}},
		{"1.4 × ours", times(1.4), talks{inEnglish}},
		{"0.8 × ours", times(0.8), talks{inEnglish}},
		{"7 more a message", func(r provider.Received) int { return byBook(r) + 7*len(r.Messages) }, talks{inEnglish}},
		{"350 more with tools", func(r provider.Received) int { return byBook(r) + 350*min(len(r.Tools), 1) }, talks{inEnglish}},
		{"Chinese 0.6 ×, in Chinese", byScript, talks{inChinese}},
		{"the same, in both, in turn", byScript, talks{inChinese, inEnglish}},
		{"o200k_base, roles and raw tools", func(r provider.Received) int {
			n := 3 + o200k(r.System[0]) + o200k(string(r.RawTools))
			for _, m := range r.Messages {
				n += 3 + o200k(m.Role) + o200k(m.Text) + o200k(string(m.RawCalls))
			}
			return n
		}, talks{func(w *apptest.Writer, n int) string { return w.Question(n + 1) }}},
	}
}

// estimate is the number that was shown before a call, and what the provider counted.
type estimate struct{ shown, counted int }

func (e estimate) miss() float64 { return float64(e.shown-e.counted) / float64(e.counted) }

// measuredCalls is how many calls of each conversation are compared.
const measuredCalls = 24

// C1: whatever the provider counts, the number that is shown
// before a call is within 5 % of the provider's after ten calls.
func TestShowCalibration(t *testing.T) {
	t.Parallel()
	first := apptest.NewTable("The first calls with a provider that counts 1.4 × what we do")
	first.AddRow("call", "our number", "the provider's", "error")
	fig := apptest.NewTable("How far our number is from the provider's, at most, by the calls of a conversation")
	fig.AddRow("the provider counts", "1–5", "6–10", "11–20", "21–24", "factor", "shown ±")
	all := rulers(t)
	for i, r := range all[:apptest.ChooseSize(3, len(all))] { // app/core/tokens has the arithmetic of them all
		p := apptest.NewProvider(t, provider.Options{Count: r.count, Record: true})
		h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 64_000, 2048, p))
		calls, last := talkTo(t, h, p, r, uint64(i))
		fig.AddRow(r.name, worst(calls, 0, 5), worst(calls, 5, 10), worst(calls, 10, 20), worst(calls, 20, measuredCalls),
			fmt.Sprintf("%.3f", last.Factor), fmt.Sprintf("%.1f %%", 100*last.Deviation))
		for n, e := range calls {
			call := n / len(r.talks)
			if call >= 10 && math.Abs(e.miss()) > 0.05 {
				t.Errorf("%s: call %d is off by %.1f %%", r.name, call+1, 100*e.miss())
			}
			if r.name == "1.4 × ours" && call < 12 {
				first.AddRow(call+1, e.shown, e.counted, fmt.Sprintf("%+.1f %%", 100*e.miss()))
			}
		}
		if !last.Measured || math.Abs(last.Deviation) > 0.05 {
			t.Errorf("%s: got %+v, want it measured, within 5 %%", r.name, last)
		}
	}
	first.Log(t)
	fig.Log(t)
}

// talkTo holds the conversations, and returns the numbers of each call in order.
func talkTo(t *testing.T, h *apptest.Bobbin, p *provider.Server, r ruler, seed uint64) ([]estimate, core.CalibrationView) {
	t.Helper()
	var ids []core.SessionID
	for range r.talks {
		ids = append(ids, apptest.NewSession(t, h.Client, core.Session{}))
	}
	w := apptest.NewWriter(seed)
	var calls []estimate
	var last core.CalibrationView
	for n := 0; len(calls) < measuredCalls*len(r.talks); n++ {
		for i, talk := range r.talks {
			question := talk(w, n)
			if n%3 == 2 {
				question += " Use a tool."
			}
			got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: ids[i], Content: question})
			report := reported(t, h.Client, got.Run.ID) // of the run's last call
			all := p.Received()
			calls, last = append(calls, estimate{report.Used, all[len(all)-1].Tokens}), report.Calibration
		}
	}
	return calls, last
}

// worst returns the largest miss of these calls of all conversations.
func worst(calls []estimate, from, to int) string {
	talks := len(calls) / measuredCalls
	most := 0.0
	for _, e := range calls[from*talks : to*talks] {
		if math.Abs(e.miss()) > math.Abs(most) {
			most = e.miss()
		}
	}
	return fmt.Sprintf("%+.1f %%", 100*most)
}
