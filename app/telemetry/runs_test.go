package telemetry_test

import (
	"context"
	"errors"
	"testing"

	"bobbin/app/core"
	"bobbin/app/telemetry"
)

// Runs count when they begin and when they end, by agent and status, and their
// failures by code.
func TestRuns(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	want(t, tel, "bobbin_runs_active", "bobbin_runs_active 0")
	want(t, tel, `bobbin_run_failures_total{code="internal"}`, `bobbin_run_failures_total{code="internal"} 0`) // an alert on its rate sees the first
	_, ended := tel.Run(t.Context(), core.Run{Agent: "assistant"})
	_, second := tel.Run(t.Context(), core.Run{Agent: "made up"})
	want(t, tel, "bobbin_runs_active", "bobbin_runs_active 2")
	ended("succeeded", "")
	second("failed", "context_floor")
	want(t, tel, "bobbin_runs_active", "bobbin_runs_active 0")
	want(t, tel, "bobbin_runs_started_total", `bobbin_runs_started_total{agent="assistant"} 1`, `bobbin_runs_started_total{agent="other"} 1`)
	want(t, tel, "bobbin_runs_finished_total", `bobbin_runs_finished_total{agent="assistant",status="succeeded"} 1`,
		`bobbin_runs_finished_total{agent="other",status="failed"} 1`)
	want(t, tel, `bobbin_run_failures_total{code="context_floor"}`, `bobbin_run_failures_total{code="context_floor"} 1`)
	want(t, tel, `bobbin_run_duration_seconds_count{agent="assistant"`, `bobbin_run_duration_seconds_count{agent="assistant",status="succeeded"} 1`)
	want(t, tel, "bobbin_runs_queued", "bobbin_runs_queued 3", "bobbin_runs_queued_oldest_age_seconds 90")
}

// When the database does not say how many runs are queued the rest is shown.
func TestQueueNotKnown(t *testing.T) {
	t.Parallel()
	tel := telemetry.New(telemetry.Options{Queued: func(context.Context) (core.QueueStats, error) { return core.QueueStats{}, errors.New("no database") }})
	want(t, tel, "bobbin_runs_queued")
	want(t, tel, "bobbin_runs_active", "bobbin_runs_active 0")
}

// Nodes and tool calls have durations; a tool that the model invented gets no label of its own,
// nor does a name that is not UTF-8.
func TestNodesAndTools(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	_, left := tel.Node(t.Context(), "llm_node")
	left(errors.New("model"))
	for name, outcome := range map[string]string{"calculator": "ok", "made up tool": "unknown", "bad\xff": "failed"} {
		_, ended := tel.Tool(t.Context(), name, "call-1")
		ended(outcome)
	}
	want(t, tel, "bobbin_node_duration_seconds_count", `bobbin_node_duration_seconds_count{node="llm_node"} 1`)
	want(t, tel, "bobbin_tool_calls_total", `bobbin_tool_calls_total{outcome="failed",tool="bad`+"\uFFFD"+`"} 1`,
		`bobbin_tool_calls_total{outcome="ok",tool="calculator"} 1`, `bobbin_tool_calls_total{outcome="unknown",tool="other"} 1`)
	want(t, tel, `bobbin_tool_call_duration_seconds_count{tool="calculator"}`, `bobbin_tool_call_duration_seconds_count{tool="calculator"} 1`)
}
