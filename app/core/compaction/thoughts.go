package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// modelOf returns the turn's model, with what its provider's answers say of the contract for
// thoughts and of changes to the tools.
func (k *Compactor) modelOf(t Turn) llm.Info {
	info := t.Profile.Model.Info()
	learned := k.Calibrator.Learned(info.Name)
	if info.Prefix == "" {
		info.Prefix = llm.PrefixContract(cmp.Or(learned.PrefixContract, string(llm.PrefixFree)))
	}
	if learned.RefusesToolChanges {
		info.ToolChanges = llm.ToolsFixed
	}
	return info
}

// describeThoughts returns the thoughts of a prompt as people see them; nil = it has none.
func (k *Compactor) describeThoughts(t Turn, n contextwindow.ThoughtCount) *core.ThoughtsReport {
	if n == (contextwindow.ThoughtCount{}) {
		return nil
	}
	r := &core.ThoughtsReport{Contract: string(k.modelOf(t).Prefix), Kept: n.Kept, Dropped: []core.ThoughtsGroup{}}
	for _, group := range []core.ThoughtsGroup{
		{Reason: "compacted", Count: n.Compacted, Detail: "a compaction changed the prompt before them, or the provider left them out earlier"},
		{Reason: "changed", Count: n.Changed, Detail: "the prompt before them has changed: the agent, its tools, an edited message, another branch, or a recalled passage"},
		{Reason: "other_model", Count: n.OtherModel, Detail: "another model produced them"},
		{Reason: "unbound", Count: n.Unbound, Detail: "what preceded them is not known: they were imported, or are older than the check"},
	} {
		if group.Count > 0 {
			r.Dropped = append(r.Dropped, group)
		}
	}
	return r
}

// DropThoughts records that the provider left out thoughts of the turn's last prompt, or refused
// it for them: no thought so far is sent again in the session. Where the model's contract was not
// known, it is from now on, in all sessions.
func (k *Compactor) DropThoughts(ctx context.Context, t Turn, dropped llm.DroppedThoughts) (Turn, error) {
	info := k.modelOf(t)
	k.Logger.WarnContext(ctx, "provider left out thoughts", "session_id", t.Session.ID, "model", info.Name,
		"contract", dropped.Contract, "reasons", dropped.Reasons)
	for reason, n := range dropped.Reasons {
		k.Observer.CountOf(info.Name, core.CountDropped, n, string(reason))
	}
	if t.Profile.Model.Info().Prefix == "" {
		k.Calibrator.Learn(info.Name, func(c *core.Calibration) { c.PrefixContract = string(dropped.Contract) })
	}
	for attempt := 0; ; attempt++ {
		state, err := contextwindow.DecodeState(t.Session.PromptState)
		if err == nil {
			err = k.applyChange(ctx, &t, core.ContextChange{PromptState: state.WithoutThoughts(int64(t.wholeLog())).Encode()})
		}
		if errors.Is(err, core.ErrStale) && attempt < maxReloads {
			if t, err = k.reloadTurn(ctx, t); err == nil {
				continue
			}
		}
		if err != nil {
			err = fmt.Errorf("record thoughts that were left out: %w", err)
		}
		return t, err
	}
}

// RefuseToolChanges records that the provider of the turn's model did not take messages that change the
// tools: no prompt for the model has any from now on, in all sessions.
func (k *Compactor) RefuseToolChanges(ctx context.Context, t Turn) {
	name := t.Profile.Model.Info().Name
	k.Logger.WarnContext(ctx, "provider refused changes of the tools", "session_id", t.Session.ID, "model", name)
	k.Calibrator.Learn(name, func(c *core.Calibration) { c.RefusesToolChanges = true })
}
