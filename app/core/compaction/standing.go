package compaction

import (
	"context"
	"fmt"
	"math"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/standing"
)

// InstructionReader reads the newest standing instructions of a session's current path: those of its
// messages through a seq, and those added by hand. They are at most as many as the limit, oldest first,
// without their states (repositories.StandingInstructions).
type InstructionReader interface {
	OnPath(ctx context.Context, tenant core.Tenant, session core.SessionID, through int64, limit int) ([]core.StandingInstruction, error)
}

// allMessages is a seq after every message.
const allMessages = math.MaxInt64

// Standing is what users set for the whole conversation, as the prompts of a turn may list it.
// It is never changed.
type Standing struct {
	through int64                      // the last message whose instructions are there
	given   []core.StandingInstruction // what was recognized, or added or edited by hand, in any state
	inputs  []contextwindow.Instruction
}

// standingThrough returns the last message whose instructions the prompt of the plan may have to list,
// since the prompt does not show the message; 0 = those added by hand alone, -1 = it lists none.
func (t Turn) standingThrough(p plan) int64 {
	switch {
	case p.d.Summarize != nil || p.d.Activate != nil || p.d.HidesRequests():
		return allMessages
	case t.Session.SummaryVersion > 0 || t.Session.StandingCount > 0:
		return t.Session.SummaryThroughSeq
	}
	return -1
}

// lacksStanding reports whether instructions through the seq of standingThrough are still to be loaded.
func (t Turn) lacksStanding(through int64) bool {
	return through >= 0 && (t.Standing == nil || t.Standing.through < through)
}

// withStanding returns the turn with the standing instructions of its session's messages through the seq,
// and those added by hand. The prompts of a run have them as they were when the first one needed them.
func (k *Compactor) withStanding(ctx context.Context, t Turn, through int64) (Turn, error) {
	if !t.lacksStanding(through) {
		return t, nil
	}
	all, err := k.loadInstructions(ctx, t, through, resolvedInstructions)
	t.Standing = &Standing{through: through, given: all}
	// A prompt may have to list the newest that stand, and the newest that a message replaced or withdrew,
	// which stand until that message has left the prompt.
	stand, ended := 0, 0
	for _, i := range slices.Backward(all) {
		if stand == core.MaxPromptedStanding {
			break
		}
		switch {
		case i.State == core.InstructionStands:
			stand++
		case i.EndSeq > 0 && ended < core.MaxPromptedStanding:
			ended++
		default:
			continue
		}
		line := contextwindow.InstructionLine(i)
		t.Standing.inputs = append(t.Standing.inputs, contextwindow.Instruction{
			ID: i.ID, Seq: i.Seq, Line: line, Tokens: k.Counter.Text(line), ByHand: i.ByHand(), IsStrong: i.ByHand() || standing.IsStrong(i.Text), EndSeq: i.EndSeq,
		})
	}
	slices.Reverse(t.Standing.inputs)
	return t, err
}

// loadInstructions returns what InstructionReader describes, with the states.
func (k *Compactor) loadInstructions(ctx context.Context, t Turn, through int64, limit int) ([]core.StandingInstruction, error) {
	if k.Stores.Standing == nil {
		return nil, nil
	}
	rows, err := k.Stores.Standing.OnPath(ctx, scopeOf(t), t.Session.ID, through, limit)
	if err != nil {
		return nil, fmt.Errorf("load standing instructions: %w", err)
	}
	if !t.Profile.Policy.StandingInstructions {
		rows = slices.DeleteFunc(rows, func(i core.StandingInstruction) bool { return !i.ByHand() })
	}
	return ResolveInstructions(rows), nil
}

// reportedInstructions bounds the instructions of a report.
const reportedInstructions = 200

// reportInstructions adds the instructions that stand to the report, with the place of each in
// the prompt: the newest where there are many.
func (c *Inspector) reportInstructions(ctx context.Context, v snapshot, r *core.ContextReport) error {
	all, err := c.loadInstructions(ctx, v.turn, allMessages, core.MaxInstructions)
	if err != nil {
		return err
	}
	listed := map[core.InstructionID]bool{}
	for _, i := range v.d.Standing {
		listed[i.ID] = true
	}
	omitted := 0
	for _, i := range all {
		if i.State != core.InstructionStands {
			continue
		}
		switch {
		case listed[i.ID]:
			i.Placement = core.PlaceStanding
		case !i.ByHand() && v.d.ShowsWhole(i.Seq):
			i.Placement = core.PlaceVerbatim
		default:
			i.Placement = core.PlaceLeftOut
			omitted++
		}
		r.StandingInstructions = append(r.StandingInstructions, i)
	}
	if omitted > 0 {
		r.Reasons = append(r.Reasons, fmt.Sprintf("%d standing instructions are left out: they do not fit", omitted))
	}
	r.StandingInstructions = r.StandingInstructions[max(len(r.StandingInstructions)-reportedInstructions, 0):]
	return nil
}

// StandingInstructions returns the standing instructions of a session with their states,
// oldest first: those of its current path, and those that were added by hand.
func (c *Inspector) StandingInstructions(ctx context.Context, tenant core.Tenant, id core.SessionID) ([]core.StandingInstruction, error) {
	t, err := c.loadProfile(ctx, tenant, id, core.PlanPreview{})
	if err != nil {
		return nil, err
	}
	return c.loadInstructions(ctx, t, allMessages, core.MaxInstructions)
}

// resolvedInstructions bounds how many of the newest instructions are compared to find those that stand.
const resolvedInstructions = 300

// ResolveInstructions returns the instructions with their states; they are in the order in
// which they were given. Those that never stood are not returned: what only withdraws others,
// or changes what is not there. The oldest of many stand, whatever others say: no prompt lists
// them.
func ResolveInstructions(given []core.StandingInstruction) []core.StandingInstruction {
	var out []core.StandingInstruction
	at := map[string]int{}
	var stand []standing.Instruction // the newest
	for n, i := range given {
		if i.State = core.InstructionStands; i.RemovedAt != nil {
			i.State = core.InstructionRemoved
		}
		if n < len(given)-resolvedInstructions {
			if !i.Withdraws && !i.Amends {
				out = append(out, i)
			}
			continue
		}
		effect := standing.Apply(stand, standing.Found{
			Text: i.Text, Language: i.Language, Speaker: i.Speaker, Topic: i.Topic, Withdraws: i.Withdraws, Amends: i.Amends,
		})
		for _, id := range effect.Ends {
			ended := &out[at[id]]
			if ended.State = core.InstructionReplaced; i.Withdraws {
				ended.State = core.InstructionWithdrawn
			}
			if i.MessageID != "" {
				ended.EndSeq = i.Seq
			}
		}
		stand = slices.DeleteFunc(stand, func(s standing.Instruction) bool { return slices.Contains(effect.Ends, s.ID) })
		if !effect.Stands {
			continue
		}
		at[string(i.ID)] = len(out)
		out = append(out, i)
		if i.RemovedAt == nil {
			stand = append(stand, standing.Instruction{ID: string(i.ID), Text: i.Text, Speaker: i.Speaker, Topic: effect.Topic})
			stand = stand[max(len(stand)-core.MaxPromptedStanding, 0):]
		}
	}
	return out
}
