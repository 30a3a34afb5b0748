package telemetry_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/app/telemetry"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
)

// plain are labels that are the names themselves, but for one that is not known.
func plain() telemetry.Labels {
	name := func(s string) string {
		if strings.HasPrefix(s, "made up") {
			return "other"
		}
		return s
	}
	return telemetry.Labels{Model: name, Agent: name, Tool: name}
}

// newTelemetry returns a Telemetry with plain labels.
func newTelemetry(t testing.TB) *telemetry.Telemetry {
	t.Helper()
	return telemetry.New(options())
}

// options are those of a Telemetry that has everything but a database.
func options() telemetry.Options {
	return telemetry.Options{
		Labels: plain(), Build: telemetry.Build{Version: "1", Commit: "c", Go: "go1"},
		Queued: func(context.Context) (core.QueueStats, error) {
			return core.QueueStats{Queued: 3, Oldest: 90 * time.Second}, nil
		},
		Undelivered: func(context.Context) (core.DeliveryStats, error) {
			return core.DeliveryStats{Waiting: 2, Oldest: time.Minute}, nil
		},
		SlackBehind: func(context.Context) (int64, error) { return 4, nil },
		NATS: func() core.NATSStats {
			return core.NATSStats{Connected: true, Routes: 2, Reconnects: 1, Slow: 3, In: 40, Out: 50}
		},
		Calibrations: func() map[string]tokens.Estimate {
			return map[string]tokens.Estimate{"m": {Factor: 1.25, Deviation: 0.02, Samples: 9}}
		},
	}
}

// scrape returns all metrics.
func scrape(t testing.TB, tel *telemetry.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if kind := w.Header().Get("Content-Type"); w.Code != http.StatusOK || !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Fatalf("got %d, %s, want metrics in the text format", w.Code, kind)
	}
	return w.Body.String()
}

// exposed returns the lines of the exposition that begin with the name.
func exposed(t testing.TB, tel *telemetry.Telemetry, name string) string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(scrape(t, tel)) {
		if strings.HasPrefix(line, name) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}

// turn is a turn with a model of the name.
func turn(name string) compaction.Turn {
	return compaction.Turn{Profile: compaction.Profile{
		Policy: contextwindow.Policy{Strategy: "hybrid"},
		Model:  llmtest.Scripted().WithInfo(llm.Info{Name: name, Window: 8192}),
	}}
}

// prompt is a decision for a prompt of that size in a window of 8,192.
func prompt(total int, rungs ...int) contextwindow.Decision {
	return contextwindow.Decision{
		Total: total, Rungs: rungs, Factor: 1, Budget: contextwindow.Budget{Window: 8192, Usable: 6144},
		Pinned:  []contextwindow.Slot{{}},
		History: []contextwindow.Slot{{Place: core.PlaceLeftOut}, {Place: core.PlaceMasked}, {Place: core.PlaceVerbatim}},
		Run:     []contextwindow.Slot{{Place: core.PlaceVerbatim}},
	}
}

// sized returns the size of a prompt.
func sized(system, summary, tail int) (s contextwindow.PromptSize) {
	s.Of[contextwindow.SectionSystem], s.Of[contextwindow.SectionSummary], s.Of[contextwindow.SectionTail] = system, summary, tail
	return s
}

// everything does each thing that is counted once, so that every metric has a series.
func everything(t testing.TB, tel *telemetry.Telemetry) {
	t.Helper()
	ctx := context.Background()
	_, answered := tel.Request(ctx, "GET", "/healthz", nil)
	answered(200, false)
	tel.Stream()("ended")
	tel.Fitted(ctx, turn("m"), prompt(3000, 1), nil)
	sent := sized(2300, 700, 0)
	sent.Thoughts.Kept = 1
	tel.Sending(ctx, turn("m"), prompt(3000), sent)
	tel.CountOf("m", core.CountDropped, 1, string(llm.DropPrefix))
	tel.CountOf("m", core.CountNative, 1, compaction.NativeRefused)
	tel.CountOf("m", core.CountWarnings, 1)
	_, made := tel.Summarizing(ctx, turn("m"), contextwindow.Order{Trigger: "share", Rung: 2})
	made(compaction.Made{Outcome: compaction.OutcomeFallback, Cause: "empty", Summary: core.Summary{TokenCount: 300}})
	tel.Committed(ctx, compaction.Commit{Turn: turn("m"), Before: prompt(6000), After: prompt(3000)})
	call(t, tel, llmtest.Step{Text: []string{"hi"}, Usage: &core.Usage{InputTokens: 10, OutputTokens: 2, ReasoningTokens: 1, CacheReadTokens: 4, CacheWriteTokens: 2}})
	call(t, tel, llmtest.Fail(&llm.Error{Kind: llm.KindAuth}))
	_, ended := tel.Run(ctx, core.Run{Agent: "assistant"})
	ended("failed", "model_auth")
	_, left := tel.Node(ctx, "llm_node")
	left(nil)
	_, done := tel.Tool(ctx, "calculator", "1")
	done("ok")
	watch(tel)
	tel.Count(core.CountRemoved, 9, "events")
	tel.Count(core.CountSweeps, 1, "done")
	tel.Count(core.CountSlack, 1, "message", "stored")
	tel.Count(core.CountDeliveries, 1, "webhook", "delivered")
	tel.Count(core.CountRenewals, 2, core.WorkRun, "lost")
	tel.Count(core.CountTakeovers, 2, core.WorkRun)
	tel.Count(core.CountFound, 1, "queued_run")
	tel.Count(core.CountFenced, 1, "webhook")
}

// watch is a watcher that receives an event and is dropped.
func watch(tel *telemetry.Telemetry) {
	left := tel.Watching()
	tel.FanOut(3 * time.Millisecond)
	tel.Count(core.CountResyncs, 1)
	tel.Count(core.CountEventsFound, 2)
	left(fmt.Errorf("watch: %w", &core.Error{Kind: core.ErrUnavailable, Code: core.CodeSlowReader}))
}

// priced is a model that costs 2 dollars for a million tokens of a prompt, and 8 for
// those of an answer.
func priced() llm.Info {
	return llm.Info{Name: "m", Provider: "openai", Window: 8192, InputPrice: 2, OutputPrice: 8}
}

// call calls a model that does the step.
func call(t testing.TB, tel *telemetry.Telemetry, step llmtest.Step) {
	t.Helper()
	m := tel.Model(llmtest.Scripted(step).WithInfo(priced()), "provider-m")
	compare.Equal(t, "info: want the model's", priced(), m.Info())
	_, err := llm.Collect(m.Stream(context.Background(), llm.Request{}), nil)
	compare.True(t, (err != nil) == (step.Err != nil), "got error %v, want that of the model: %v", err, step.Err)
}

// want compares lines of the exposition.
func want(t testing.TB, tel *telemetry.Telemetry, name string, lines ...string) {
	t.Helper()
	compare.Equal(t, "exposed", strings.Join(lines, "\n"), exposed(t, tel, name))
}
