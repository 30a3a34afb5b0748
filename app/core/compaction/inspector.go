package compaction

import (
	"context"
	"fmt"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// Inspector answers questions about a session's context (what the next prompt is, where a message is,
// what another model would change, how a summary came about) and edits and restores summaries. It
// loads and plans as its Compactor does for a model call, so its answers match what happens, and
// carries nothing out. Safe for concurrent use.
type Inspector struct {
	*Compactor

	// Preset returns a policy preset with the settings that all agents share.
	Preset func(name string) (contextwindow.Policy, error)
}

// snapshot is a session's turn, the plan of its next prompt, and that prompt.
type snapshot struct {
	turn   Turn
	older  string // why the turn has an older version of the summary than the session; empty = it has not
	more   int    // how many messages at the turn's end are not in the log
	in     contextwindow.Input
	d      contextwindow.Decision
	prompt contextwindow.Prompt
}

// loadSnapshot plans the session's next prompt, under other conditions if the preview has any.
func (c *Inspector) loadSnapshot(ctx context.Context, tenant core.Tenant, id core.SessionID, ask core.PlanPreview) (snapshot, error) {
	t, err := c.loadTurn(ctx, tenant, id, ask)
	if err == nil && ask.Policy != "" {
		t.Profile.Policy, err = c.Preset(ask.Policy)
	}
	if err != nil {
		return snapshot{}, err
	}
	more := 0
	if ask.Content != "" || len(ask.Parts) > 0 { // a run in progress counts as ended
		m := core.Message{
			ID: core.NewID[core.MessageID](), Seq: int64(t.wholeLog()) + 1, OnPath: true,
			Role: core.RoleUser, Content: ask.Content, Parts: ask.Parts, TokenCount: ask.Tokens,
		}
		t.History, t.Run, more = slices.Concat(t.History, t.Run), []core.Message{m}, 1
	}
	next, changed, err := c.withOlderVersion(ctx, t)
	if err != nil {
		return snapshot{}, err
	}
	v, err := c.snapshotTurn(ctx, next)
	if v.more = more; changed {
		v.older = olderReason(t.Session.SummaryVersion, next.Session.SummaryVersion)
	}
	return v, err
}

// snapshotTurn is loadSnapshot for a turn as it is. Where prompts do not wait for the summary that is due,
// or do not fit before it, it is the prompt without the summary, as Fit sends it.
func (c *Inspector) snapshotTurn(ctx context.Context, t Turn) (snapshot, error) {
	p, err := c.planTurn(ctx, t, &progress{})
	if err != nil {
		return snapshot{}, err
	}
	first, order := p, p.d.Summarize // say what comes before the prompt
	waits := order == nil || order.Kind == core.SummaryRun || p.in.State.Cut == nil && order.ThroughSeq == order.OrderedSeq
	switch {
	case !waits:
		p = p.withoutSummary(notAwaited)
	case p.d.Floor == nil && p.d.Total > p.d.Budget.Usable:
		p = p.withoutSummary("the oldest messages are left out here: before the summary they do not fit")
	}
	t, p = c.withRecalled(ctx, t, p)
	if waits {
		p.d.Summarize, p.d.Activate, p.d.WillTrigger, p.d.TurnsLeft = order, first.d.Activate, first.d.WillTrigger, first.d.TurnsLeft
	}
	if t.Notes, err = c.loadNotes(ctx, t, p.d.Loops); err != nil {
		return snapshot{}, err
	}
	prompt, err := c.assemble(ctx, t, p.d)
	in := p.in
	in.State, in.Once = first.in.State, ""
	return snapshot{turn: t, in: in, d: p.d, prompt: prompt}, err
}

// CheckPin returns ErrContextFloor if the session's prompts would have no room left with the
// message pinned: what cannot be shrunk (system prompt, tools, pinned messages) must stay at
// or under the landing point of a compaction. It changes nothing.
func (c *Inspector) CheckPin(ctx context.Context, tenant core.Tenant, id core.SessionID, m core.Message) error {
	defer c.acquireView(ctx)()
	t, in, err := c.loadInput(ctx, tenant, id)
	if err != nil {
		return err
	}
	pinned, err := c.Stores.Messages.Pinned(ctx, tenant, id)
	if err != nil {
		return err
	}
	m.Pinned = true
	pinned = append(slices.DeleteFunc(pinned, func(p core.Message) bool { return p.ID == m.ID }), m)
	floor, room := contextwindow.PinnedFloor(in, c.planItems(t, pinned, llm.Info{})) // they are quoted
	if floor <= room {
		return nil
	}
	e := core.Errorf(core.ErrContextFloor, "with this message pinned, %d tokens could not be shrunk (system prompt, tools and %d pinned messages), "+
		"and %s leaves room for %d: unpin another message, or use a model with a larger window", floor, len(pinned), t.Profile.Model.Info().Name, room)
	e.Code = "context_floor"
	return e
}

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
