package graph_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents/graph"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// loop returns START → a → b, with b going back to a or on to END as the router says.
func loop(t *testing.T, a, b graph.NodeFunc[trace], router graph.Router[trace]) *graph.Compiled[trace] {
	t.Helper()
	c := must.Get(graph.New[trace]().Node("a", a).Node("b", b).
		Edge(graph.START, "a").Edge("a", "b").ConditionalEdge("b", router, "a", graph.END).Compile())(t)
	return c
}

// rounds returns a router that goes round until b was passed n times.
func rounds(n int) graph.Router[trace] {
	return func(_ context.Context, s trace) string {
		if len(s)/2 < n {
			return "a"
		}
		return graph.END
	}
}

func TestStepLimit(t *testing.T) {
	t.Parallel()
	got, err := loop(t, visit("a"), visit("b"), rounds(1000)).Run(t.Context(), nil, 100, nil)
	must.True(t, errors.Is(err, graph.ErrStepLimit) && err.Error() == `the step limit was reached before node "a"`, "got error %v, want the step limit before a", err)
	compare.Equal(t, "steps in the state", 100, len(got))
}

func TestWrongTarget(t *testing.T) {
	t.Parallel()
	got, err := loop(t, visit("a"), visit("b"), to("nowhere")).Run(t.Context(), nil, 10, nil)
	want := `the router of "b" answered "nowhere", which is not among its targets: ["a" "__end__"]`
	compare.True(t, err != nil && err.Error() == want, "got error %v, want %q", err, want)
	compare.Equal(t, "the node itself was good: state", trace{"a", "b"}, got)
}

func TestCancel(t *testing.T) {
	t.Parallel()
	cause := errors.New("the user pressed stop")
	wait := func(ctx context.Context, _ trace) (trace, error) {
		<-ctx.Done()
		return nil, fmt.Errorf("model: %w", ctx.Err())
	}
	waitForCause := func(ctx context.Context, _ trace) (trace, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	finish := func(ctx context.Context, s trace) (trace, error) {
		<-ctx.Done()
		return visit("b")(ctx, s)
	}
	fail := func(ctx context.Context, _ trace) (trace, error) {
		<-ctx.Done()
		return nil, io.ErrUnexpectedEOF
	}
	tests := []struct {
		name     string
		b        graph.NodeFunc[trace]
		wantErr  error
		wantText string
		want     trace
	}{
		{"the node gives up", wait, cause, `canceled at node "b": the user pressed stop (model: context canceled)`, trace{"a"}},
		{"the node tells the cause", waitForCause, cause, `canceled at node "b": the user pressed stop (the user pressed stop)`, trace{"a"}},
		{"the node finishes", finish, cause, `canceled at node "a": the user pressed stop (context canceled)`, trace{"a", "b"}},
		{"the node fails otherwise", fail, io.ErrUnexpectedEOF, `node "b": unexpected EOF`, trace{"a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() {
					time.Sleep(time.Minute) // b is at work by then
					cancel(cause)
				}()
				got, err := loop(t, visit("a"), tt.b, rounds(5)).Run(ctx, nil, 100, nil)
				compare.True(t, errors.Is(err, tt.wantErr) && err.Error() == tt.wantText, "got error %v, want %s", err, tt.wantText)
				compare.Equal(t, "the last good state", tt.want, got)
			})
		})
	}
}

// TestCancelAtTheEnd: what is finished counts, even if nobody waits for it now.
func TestCancelAtTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	last := func(ctx context.Context, s trace) (trace, error) {
		cancel()
		return visit("b")(ctx, s)
	}
	got, err := loop(t, visit("a"), last, rounds(1)).Run(ctx, nil, 100, nil)
	diff := cmp.Diff(trace{"a", "b"}, got)
	compare.True(t, diff == "" && err == nil, "run: error %v, state (-want +got):\n%s", err, diff)
}

// trace is a state that remembers which nodes it passed.
type trace []string

// visit returns a node that adds its name to the state.
func visit(name string) graph.NodeFunc[trace] {
	return func(_ context.Context, s trace) (trace, error) {
		return append(s[:len(s):len(s)], name), nil
	}
}

// to returns a router that always answers the target.
func to(target string) graph.Router[trace] {
	return func(context.Context, trace) string { return target }
}

func TestCompileFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		build func(g *graph.Graph[trace])
		want  []string
	}{
		{"fine", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Edge(graph.START, "a").Edge("a", graph.END)
		}, nil},
		{"empty", func(*graph.Graph[trace]) {}, []string{`no edge leads out of "__start__"`}},
		{"no function", func(g *graph.Graph[trace]) {
			g.Node("a", nil).Edge(graph.START, "a").Edge("a", graph.END)
		}, []string{`an edge leads from "__start__" to "a", which is not a node`}},
		{"unknown targets", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Edge(graph.START, "a").ConditionalEdge("a", to("b"), "b", graph.START)
		}, []string{`an edge leads from "a" to "b", which is not a node`, `an edge leads from "a" to "__start__", which is not a node`}},
		{"dead end", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Edge(graph.START, "a")
		}, []string{`no edge leads out of "a"`}},
		{"two edges", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Edge(graph.START, "a").Edge("a", graph.END).ConditionalEdge("a", to("a"), "a")
		}, []string{`"a" has two edges: one conditional edge chooses among targets`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := graph.New[trace]()
			tt.build(g)
			_, err := g.Compile()
			var got []string
			if err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			compare.Equal(t, "faults", tt.want, got)
		})
	}
}
