package nodes

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Every text of a delta is one that databases take; what the model gave stays as it was.
func TestCleanDelta(t *testing.T) {
	t.Parallel()
	dirty := core.Part{Type: "x", Text: "a\x00", Name: "b\x00", Signature: "c\x00", Origin: "o"}
	given := dirty
	want := &core.Part{Type: "x", Text: core.CleanText("a\x00"), Name: core.CleanText("b\x00"), Signature: core.CleanText("c\x00"), Origin: "o"}
	got := cleanDelta(llm.Delta{Part: &given, Compaction: &given})
	if diff := cmp.Diff(llm.Delta{Part: want, Compaction: want}, got); diff != "" || given != dirty {
		t.Errorf("the model's is %+v now, (-want +got):\n%s", given, diff)
	}
	if got := cleanDelta(llm.Delta{Text: "a"}); got != (llm.Delta{Text: "a"}) {
		t.Errorf("got %+v", got)
	}
}
