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

// However many people view contexts concurrently: the turns loaded for them are bounded.
func TestViewsAreBounded(t *testing.T) {
	t.Parallel()
	c := &Inspector{Compactor: New(Options{})}
	var release func()
	for range maxViews {
		var err error
		if release, err = c.acquireView(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, look := range map[string]func() error{
		"report":  func() error { _, err := c.Report(ctx, core.Tenant{}, ""); return err },
		"prompt":  func() error { _, err := c.Prompt(ctx, core.Tenant{}, "", core.PlanPreview{}); return err },
		"pin":     func() error { return c.CheckPin(ctx, core.Tenant{}, "", core.Message{}) },
		"dry run": func() error { _, err := c.DryRun(ctx, core.Tenant{}, "", core.PlanPreview{}); return err },
		"where":   func() error { _, err := c.Where(ctx, core.Tenant{}, "", ""); return err },
		"edit":    func() error { _, err := c.Edit(ctx, core.Tenant{}, "", core.SummaryEdit{}); return err },
		"restore": func() error { _, err := c.Restore(ctx, core.Tenant{}, "", 0); return err },
	} {
		compare.Error(t, name+": want that it waits", context.Canceled, look())
	}
	release()
	compare.Error(t, "after one ended", nil, compare.ErrorOf(c.acquireView(t.Context())))
}
