package compaction

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// SetupReader returns those of the setups that are stored with the session, by their hashes
// (repositories.PromptSetups).
type SetupReader interface {
	Find(ctx context.Context, tenant core.Tenant, session core.SessionID, hashes []string) ([]core.PromptSetup, error)
}

// promptSetup returns the system prompt and the tools of the turn; false if prompts do not keep them
// when they change.
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
