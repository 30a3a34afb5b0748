package tools_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents/tools"
	"bobbin/app/core/llm"
)

// named is a tool that has only a name.
type named string

func (n named) Spec() llm.ToolSpec                             { return llm.ToolSpec{Name: string(n)} }
func (named) Idempotent() bool                                 { return true }
func (named) Call(context.Context, tools.Call) (string, error) { return "", nil }

func newSet(t *testing.T, list ...tools.Tool) *tools.Set {
	t.Helper()
	set, err := tools.NewSet(list...)
	if err != nil {
		t.Fatalf("new set: %v", err)
	}
	return set
}

func TestNewSetFaults(t *testing.T) {
	t.Parallel()
	_, err := tools.NewSet(named("a"), named(""), named("b"), named("a"))
	if want := "tools: a tool has no name\nthere are two tools \"a\""; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestSetNames(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]string{"a", "b"}, newSet(t, named("b"), named("a")).Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{}, newSet(t).Names()); diff != "" {
		t.Errorf("names of no tools (-want +got):\n%s", diff)
	}
}

// TestSpecsAreSorted: the tool list of a prompt does not depend on the order in
// which an agent's file names its tools.
func TestSpecsAreSorted(t *testing.T) {
	t.Parallel()
	set := newSet(t, named("b"), named("c"), named("a"))
	names := []string{"c", "a", "gone", "c", "b"}
	got := set.Specs(names)
	if diff := cmp.Diff([]llm.ToolSpec{{Name: "a"}, {Name: "b"}, {Name: "c"}}, got); diff != "" {
		t.Errorf("specs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"c", "a", "gone", "c", "b"}, names); diff != "" {
		t.Errorf("the caller's names changed (-want +got):\n%s", diff)
	}
	if got := set.Specs(nil); got == nil || len(got) != 0 {
		t.Errorf("got %#v for no names, want an empty slice", got)
	}
}
