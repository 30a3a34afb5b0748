package compaction

import (
	"context"
	"errors"
	"regexp"
	"slices"

	"github.com/aymanbagabas/go-udiff/lcs"

	"bobbin/app/core"
)

// Diff compares a version of the summary with another one; against 0 is the empty text,
// below 0 the version before. Errors: ErrNotFound; ErrUnprocessable for a version whose text
// was erased.
func (c *Inspector) Diff(ctx context.Context, tenant core.Tenant, id core.SessionID, version, against int) (core.SummaryDiff, error) {
	after, err := c.loadReadable(ctx, tenant, id, version)
	if err != nil {
		return core.SummaryDiff{}, err
	}
	var before core.Summary
	switch {
	case against > 0:
		before, err = c.loadReadable(ctx, tenant, id, against)
	case against < 0:
		before, err = c.Stores.Summaries.Before(ctx, tenant, id, version)
		if errors.Is(err, core.ErrNotFound) { // the first one
			before, err = core.Summary{}, nil
		}
	}
	if err != nil {
		return core.SummaryDiff{}, err
	}
	a, b := piece.FindAllString(before.Content, -1), piece.FindAllString(after.Content, -1)
	a, b = splitLine(a, b), splitLine(b, a)
	d := core.SummaryDiff{Ops: []core.DiffOp{}}
	add := func(op string, pieces []string) {
		if len(pieces) > 0 {
			d.Ops = append(d.Ops, core.DiffOp{Op: op, Pieces: pieces})
		}
	}
	at := 0
	for _, e := range lcs.DiffLines(a, b) {
		add(core.DiffEqual, a[at:e.Start])
		add(core.DiffRemoved, a[e.Start:e.End])
		add(core.DiffAdded, b[e.ReplStart:e.ReplEnd])
		d.Equal, d.Removed, d.Added, at = d.Equal+e.Start-at, d.Removed+e.End-e.Start, d.Added+e.ReplEnd-e.ReplStart, e.End
	}
	add(core.DiffEqual, a[at:])
	d.Equal += len(a) - at
	d.Version, d.Against = version, before.Version
	return d, nil
}

// loadReadable returns a version that still has its text.
func (c *Inspector) loadReadable(ctx context.Context, tenant core.Tenant, id core.SessionID, version int) (core.Summary, error) {
	s, err := c.Stores.Summaries.Get(ctx, tenant, id, version)
	if err == nil && s.State == core.SummaryErased {
		err = core.Errorf(core.ErrUnprocessable, "version %d is gone: a message that it covered was deleted or edited", version)
	}
	return s, err
}

// splitLine splits the line that is the last one of the other text, where no line break follows it.
func splitLine(pieces, other []string) []string {
	i := slices.IndexFunc(pieces, func(p string) bool { return len(other) > 0 && p == other[len(other)-1]+"\n" })
	if i < 0 {
		return pieces
	}
	return slices.Concat(pieces[:i], []string{other[len(other)-1], "\n"}, pieces[i+1:])
}

// piece is a line, or a sentence and the space behind it.
var piece = regexp.MustCompile(`\n|[^\n]+?(?:\n|[.!?…]["')\]]*[ \t]+|[。！？]+|$)`)
