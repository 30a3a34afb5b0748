package telemetry_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/telemetry"
	"bobbin/tests/collector"
)

// turnOf does what is observed of a plain turn: a request, a run, four nodes, a model
// call of a hundred pieces, and a tool.
func turnOf(tel *telemetry.Telemetry, model llm.Model) {
	request, answered := tel.Request(context.Background(), "POST", "/api/v1/sessions/:id/messages", http.Header{})
	run := core.Run{ID: "r", Agent: "assistant"}
	tel.Accepted(request, run)
	ctx, ended := tel.Run(context.Background(), run)
	for _, name := range []string{"process_message", "retrieve_context", "save_user_message", "llm_node"} {
		_, left := tel.Node(ctx, name)
		left(nil)
	}
	tel.Fitted(ctx, turn("m"), prompt(3000), nil)
	tel.Sending(ctx, turn("m"), prompt(3000), contextwindow.PromptSize{System: 3000})
	_, _ = llm.Collect(model.Stream(ctx, llm.Request{}), nil)
	_, done := tel.Tool(ctx, "calculator", "1")
	done("ok")
	ended("succeeded", "")
	answered(200, true)
}

// hundred is a model that says a hundred pieces.
func hundred() llm.Model {
	var pieces []string
	for range 100 {
		pieces = append(pieces, "word ")
	}
	return llm.Scripted(llm.Step{Text: pieces, Repeat: true, Usage: &core.Usage{InputTokens: 10}}).WithInfo(priced())
}

// BenchmarkTurn is what observing costs: the model alone, with metrics, and with traces.
func BenchmarkTurn(b *testing.B) {
	b.Run("model alone", func(b *testing.B) {
		model := hundred()
		for b.Loop() {
			_, _ = llm.Collect(model.Stream(context.Background(), llm.Request{}), nil)
		}
	})
	b.Run("metrics", func(b *testing.B) {
		tel := newTelemetry(b)
		model := tel.Model(hundred(), "m")
		for b.Loop() {
			turnOf(tel, model)
		}
	})
	b.Run("metrics and traces", func(b *testing.B) {
		to := collector.New()
		defer to.Close()
		tel := newTelemetry(b)
		if err := tel.Trace(b.Context(), telemetry.TraceOptions{Endpoint: to.URL, Env: noEnv, Logger: slog.New(slog.DiscardHandler)}); err != nil {
			b.Fatal(err)
		}
		model := tel.Model(hundred(), "m")
		for b.Loop() {
			turnOf(tel, model)
		}
		b.StopTimer()
		_ = tel.Close(context.Background()) // the collector may be behind
	})
}

// BenchmarkScrape is one GET /metrics.
func BenchmarkScrape(b *testing.B) {
	tel := newTelemetry(b)
	everything(b, tel)
	for b.Loop() {
		if _, _, err := tel.Expose(); err != nil {
			b.Fatal(err)
		}
	}
}
