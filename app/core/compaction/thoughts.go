package compaction

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

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

// SetupReader returns those of the setups that are stored with the session (repositories.PromptSetups).
type SetupReader interface {
	Find(ctx context.Context, tenant core.Tenant, session core.SessionID, hashes []string) ([]core.PromptSetup, error)
}

// promptSetup returns the system prompt and the tools of the turn; false if prompts do not keep them.
func (k *Compactor) promptSetup(t Turn) (core.PromptSetup, bool) {
	if k.Stores.Setups == nil || !k.modelOf(t).AppendsInstructions() {
		return core.PromptSetup{}, false
	}
	tools, err := json.Marshal(t.Profile.Tools)
	if err != nil {
		return core.PromptSetup{}, false
	}
	return core.NewPromptSetup(t.Profile.SystemPrompt, t.Profile.ToolUsage, tools)
}

// NewSetup returns the turn's setup if its session does not name it yet: it is to be stored with the
// thoughts that are bound to it. Nil = it is stored, or prompts do not keep it.
func (k *Compactor) NewSetup(t Turn) *core.PromptSetup {
	setup, ok := k.promptSetup(t)
	if !ok || setupsIn(t)[setup.Hash] {
		return nil
	}
	return &setup
}

// setupsIn returns the hashes of the setups that the messages of the turn and its native summary name.
func setupsIn(t Turn) map[string]bool {
	hashes := map[string]bool{}
	if n := t.Session.NativeSummary; n != nil {
		hashes[n.Frozen] = true
	}
	for _, list := range [][]core.Message{t.History, t.Run} {
		for _, m := range list {
			for _, p := range m.Parts {
				hashes[p.Setup], hashes[p.Frozen] = true, true
			}
		}
	}
	delete(hashes, "")
	return hashes
}

// withSetups returns the turn with the setups of its thoughts and its native summary, unless all of
// them were produced with the current one. Setups that are not stored are left out.
func (k *Compactor) withSetups(ctx context.Context, t Turn) (Turn, error) {
	current, ok := k.promptSetup(t)
	hashes := setupsIn(t)
	delete(hashes, current.Hash)
	if !ok || len(hashes) == 0 {
		return t, nil
	}
	setups, list := contextwindow.Setups{}, []core.PromptSetup{current}
	maps.Copy(setups, t.Setups)
	maps.DeleteFunc(hashes, func(hash string, _ bool) bool { _, known := setups[hash]; return known })
	if len(hashes) > 0 {
		found, err := k.Stores.Setups.Find(ctx, scopeOf(t), t.Session.ID, slices.Collect(maps.Keys(hashes)))
		if err != nil {
			return t, fmt.Errorf("load system prompts of thoughts: %w", err)
		}
		list = append(list, found...)
	}
	for _, s := range list {
		if _, known := setups[s.Hash]; known {
			continue
		}
		setup, err := contextwindow.NewSetup(s, k.Counter)
		if err != nil {
			return t, fmt.Errorf("tools of the setup %s: %w", s.Hash, err)
		}
		setups[s.Hash] = setup
	}
	t.Setups = setups
	return t, nil
}
