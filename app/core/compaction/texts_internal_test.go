package compaction

import (
	"context"
	"errors"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// However many summaries are made concurrently: what they load is bounded. One of
// texts that are loaded already does not wait.
func TestMaterialOfAllSummariesIsBounded(t *testing.T) {
	t.Parallel()
	k := New(Options{})
	backlog := []core.Message{{Unloaded: 1 << 30}}
	var releases []func()
	for range 8 {
		release := must.Get(k.acquireMaterial(t.Context(), backlog))(t)
		releases = append(releases, release)
	}
	impatient := errors.New("nobody waits any more")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(impatient)
	compare.Error(t, "the ninth large summary: want that it waits", impatient, compare.ErrorOf(k.acquireMaterial(ctx, backlog)))
	compare.Error(t, "a summary that has to load nothing", nil, compare.ErrorOf(k.acquireMaterial(ctx, []core.Message{{Content: "loaded"}})))
	releases[0]()
	compare.Error(t, "after one was made", nil, compare.ErrorOf(k.acquireMaterial(t.Context(), backlog)))
}
