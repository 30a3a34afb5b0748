package compaction

import (
	"context"
	"fmt"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// Turns says where the messages of the session are in its next prompt, by one plan, and how large
// the prompts of its newest turns were, by the reports of their runs. ErrNotFound.
func (c *Inspector) Turns(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.ContextTurns, error) {
	defer c.acquireView(ctx)()
	v, err := c.loadSnapshot(ctx, tenant, id, core.PlanPreview{})
	if err != nil {
		return core.ContextTurns{}, err
	}
	summarized, err := c.Stores.Summaries.Covered(ctx, tenant, id)
	if err != nil {
		return core.ContextTurns{}, fmt.Errorf("tokens that summaries cover: %w", err)
	}
	// One more than is shown tells whether the first one was summarized.
	reports, older, err := c.Stores.Runs.Reports(ctx, tenant, id, core.MaxTurns+1)
	if err != nil {
		return core.ContextTurns{}, fmt.Errorf("reports of runs: %w", err)
	}
	turns := turnsOf(reports, summarized)
	if n := len(turns) - core.MaxTurns; n > 0 {
		turns, older = turns[n:], older+n
	}
	ranges := []core.PlacedRange{}
	add := func(from, through int64, place core.Placement, version int) {
		if n := len(ranges); n > 0 && ranges[n-1].Place == place && ranges[n-1].SummaryVersion == version {
			ranges[n-1].ThroughSeq = through
		} else if from <= through {
			ranges = append(ranges, core.PlacedRange{FromSeq: from, ThroughSeq: through, Place: place, SummaryVersion: version})
		}
	}
	covered, version := v.turn.Session.SummaryThroughSeq, v.turn.Session.SummaryVersion
	next := int64(1)
	for _, s := range v.d.Pinned {
		if s.Seq <= covered {
			add(next, s.Seq-1, core.PlaceCovered, version)
			add(s.Seq, s.Seq, core.PlaceVerbatim, 0)
			next = s.Seq + 1
		}
	}
	add(next, covered, core.PlaceCovered, version)
	slots := slices.Concat(v.d.History, v.d.Run)
	for _, m := range slices.Concat(v.turn.History, v.turn.Run) {
		place, notes := core.PlaceExcluded, 0 // a system row, or a filter refused its turn
		if len(slots) > 0 && slots[0].ID == m.ID {
			if place = slots[0].Place; slots[0].Note {
				place = core.PlaceVerbatim
			} else if place == core.PlaceCovered {
				notes = v.turn.Notes[slots[0].Loop].Version
			}
			slots = slots[1:]
		}
		add(m.Seq, m.Seq, place, notes)
	}
	omitted := max(len(ranges)-core.MaxRanges, 0)
	return core.ContextTurns{Ranges: ranges[omitted:], RangesOmitted: omitted, Turns: turns, TurnsOmitted: older}, nil
}

// turnsOf returns the turns of the reports, both oldest first.
func turnsOf(reports []core.RunReport, covered map[int]int) []core.ContextTurn {
	turns := make([]core.ContextTurn, 0, len(reports))
	before := 0
	for _, r := range reports {
		t := core.ContextTurn{
			RunID: r.RunID, Seq: r.Seq, At: r.At, Used: r.Report.Used, Usable: r.Report.Usable, Trigger: r.Report.Trigger, Sections: map[string]int{},
			SummaryVersion: r.Report.SummaryVersion, Summarized: r.Report.SummaryVersion > before, Masked: slices.Contains(r.Report.Rungs, contextwindow.RungName(1)) || r.Report.Coverage.Masked > 0,
		}
		for _, part := range r.Report.Sections {
			t.Sections[part.Name] = part.Tokens
		}
		t.Without = t.Used
		if tokens := covered[t.SummaryVersion]; tokens > 0 {
			t.Without += max(int(float64(tokens)*max(r.Report.Calibration.Factor, 0))-t.Sections["summary"], 0)
		}
		before = t.SummaryVersion
		turns = append(turns, t)
	}
	return turns
}
