package eval_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/eval"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// settings are those of a new user.
func settings() config.Config { return config.Default() }

// quiet is a logger of what somebody should act on.
func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// evaluate replays.
func evaluate(t *testing.T, e eval.Evaluation) eval.Report {
	t.Helper()
	report, err := eval.Evaluate(t.Context(), settings(), quiet(), e)
	if err != nil {
		t.Fatalf("evaluate %s: %v", e.Source, err)
	}
	return report
}

// sample is the evaluation of a sample as the command makes it.
func sample(t *testing.T, name string, policies ...string) eval.Evaluation {
	t.Helper()
	s, data, err := eval.Get(name)
	must.Do(t, err)
	return eval.Evaluation{Source: s.Name, Data: data, Format: core.ImportLines, Window: s.Window, Policies: policies}
}

// TestEval replays each sample under each policy: the table is golden, the laws
// hold. CI has one policy of one sample.
func TestEval(t *testing.T) {
	t.Parallel()
	for _, s := range eval.List() {
		policies := eval.Policies()
		if !*update && !apptest.IsLong() {
			if s.Name != "coding" {
				continue
			}
			policies = []string{"window"}
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			report := evaluate(t, sample(t, s.Name, policies...))
			laws(t, report)
			var table bytes.Buffer
			must.Do(t, report.WriteTable(&table))
			t.Logf("%s\n\n%s", s.About, table.String())
			if len(policies) > 1 {
				golden(t, filepath.Join("testdata", s.Name+".txt"), table.Bytes())
			}
			for _, p := range report.Policies {
				if f := p.Facts; f.Planted == 0 || f.Asked != f.Planted || p.Failed != nil {
					t.Errorf("%s: got %d of %d facts asked, failed %+v; want a question for each, and the conversation to go on", p.Policy, f.Asked, f.Planted, p.Failed)
				}
			}
			if s.Name == "chat" {
				timings(t, report)
			}
			if report.FactsFrom != eval.FactsOfFile || report.Everything.TooLargeFrom == 0 {
				t.Errorf("got facts from %s, too large from turn %d; want planted ones, and more than fits", report.FactsFrom, report.Everything.TooLargeFrom)
			}
		})
	}
}

// timings: in a replay, too, each policy summarizes when it says it does.
func timings(t *testing.T, r eval.Report) {
	t.Helper()
	want := map[string]bool{"budget": true, "sliding": true, "ratio": false} // after the answer
	for _, p := range r.Policies {
		after, ok := want[p.Policy]
		if !ok {
			continue
		}
		if p.Summaries == 0 {
			t.Errorf("%s: got no summary, want some", p.Policy)
		}
		for _, turn := range p.Turns {
			for _, c := range turn.Compactions {
				if c.After != after {
					t.Errorf("%s, turn %d: got %+v, want after the answer: %v", p.Policy, turn.Turn, c, after)
				}
			}
		}
	}
}

// The same conversation, policy and settings give the same report: ids and clocks
// leave no trace in it.
func TestSameAgain(t *testing.T) {
	t.Parallel()
	policies := []string{"window", "sliding"}
	if os.Getenv("BOBBIN_TEST_LONG") == "" {
		policies = policies[1:]
	}
	first, second := evaluate(t, sample(t, "incident", policies...)), evaluate(t, sample(t, "incident", policies...))
	compare.Equal(t, "second replay", first, second)
}
