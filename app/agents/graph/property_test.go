package graph_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"bobbin/app/agents/graph"
	"bobbin/tests/seed"
)

// shape is a generated graph: the targets of every source. A source with one
// target has an edge, one with more a conditional edge.
type shape struct {
	nodes []string
	exits map[string][]string
}

// walk is the state of a generated run: what was visited, and what routers choose.
type walk struct {
	visited []string
	choices []int
}

// build declares the shape. Its routers take the walk's choices one by one.
func (s shape) build() *graph.Graph[walk] {
	g := graph.New[walk]("g")
	for _, name := range s.nodes {
		g.Node(name, func(_ context.Context, w walk) (walk, error) {
			w.visited = append(slices.Clip(w.visited), name)
			return w, nil
		})
	}
	for _, from := range slices.Sorted(maps.Keys(s.exits)) {
		targets := s.exits[from]
		if len(targets) == 1 {
			g.Edge(from, targets[0])
			continue
		}
		g.ConditionalEdge(from, func(_ context.Context, w walk) string {
			return targets[w.choices[len(w.visited)%len(w.choices)]%len(targets)]
		}, targets...)
	}
	return g
}

// anyShape draws graphs of which many have faults in their paths.
func anyShape(t *rapid.T) shape {
	s := shape{exits: map[string][]string{}}
	for i := range rapid.IntRange(1, 7).Draw(t, "nodes") {
		s.nodes = append(s.nodes, fmt.Sprintf("n%d", i))
	}
	targets := append(slices.Clone(s.nodes), graph.END)
	for _, from := range append([]string{graph.START}, s.nodes...) {
		if to := rapid.SliceOfNDistinct(rapid.SampledFrom(targets), 0, 3, rapid.ID[string]).Draw(t, "targets of "+from); len(to) > 0 {
			s.exits[from] = to
		}
	}
	return s
}

// soundShape draws graphs that compile: a path through all nodes, and more edges.
func soundShape(t *rapid.T) shape {
	s := anyShape(t)
	path := append(append([]string{graph.START}, rapid.Permutation(s.nodes).Draw(t, "path")...), graph.END)
	for i, from := range path[:len(path)-1] {
		if !slices.Contains(s.exits[from], path[i+1]) {
			s.exits[from] = append(s.exits[from], path[i+1])
		}
	}
	return s
}

// sound is the oracle: by transitive closure, START leads to every node and every
// node to END.
func (s shape) sound() bool {
	all := append([]string{graph.START, graph.END}, s.nodes...)
	leads := map[[2]string]bool{}
	for from, targets := range s.exits {
		for _, to := range targets {
			leads[[2]string{from, to}] = true
		}
	}
	for _, via := range all {
		for _, from := range all {
			for _, to := range all {
				if leads[[2]string{from, via}] && leads[[2]string{via, to}] {
					leads[[2]string{from, to}] = true
				}
			}
		}
	}
	return !slices.ContainsFunc(s.nodes, func(n string) bool {
		return !leads[[2]string{graph.START, n}] || !leads[[2]string{n, graph.END}]
	})
}

func TestCompileAcceptsWhatIsSound(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		s := anyShape(t)
		_, err := s.build().Compile()
		if got, want := err == nil, s.sound(); got != want {
			t.Fatalf("got accepted %v, want %v: %v", got, want, err)
		}
	})
}

func TestRunKeepsToTheEdges(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		s := soundShape(t)
		c, err := s.build().Compile()
		if err != nil {
			t.Fatalf("compile: %v", err)
		}
		limit := rapid.IntRange(1, 30).Draw(t, "limit")
		start := walk{choices: rapid.SliceOfN(rapid.IntRange(0, 5), 1, 40).Draw(t, "choices")}
		steps := 0
		end, err := c.Run(t.Context(), start, limit, func(ctx context.Context, _ string, _ int) (context.Context, func(error)) {
			return ctx, func(error) { steps++ }
		})
		if steps != len(end.visited) || steps > limit {
			t.Fatalf("got %d steps and %d visits, want as many, and at most %d", steps, len(end.visited), limit)
		}
		last := graph.START
		for _, name := range end.visited {
			if !slices.Contains(s.exits[last], name) {
				t.Fatalf("got %s after %s, which no edge allows", name, last)
			}
			last = name
		}
		reached := slices.Contains(s.exits[last], graph.END)
		switch limited, isLimit := errors.AsType[*graph.StepLimitError](err); {
		case err == nil && !reached:
			t.Fatalf("got the end after %v, but no edge leads to END", end.visited)
		case err != nil && (!isLimit || limited.Limit != limit || steps != limit):
			t.Fatalf("got error %v after %d steps, want none, or the limit of %d", err, steps, limit)
		}
	})
}
