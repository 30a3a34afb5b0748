package app

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"bobbin/app/core"
)

// AuditStart notes in the audit log with which settings and which version a server
// starts, if they are others than the last time that this replica was started. An entry
// that cannot be stored is in the log of the server.
func (a *App) AuditStart(ctx context.Context) {
	if err := a.auditStart(ctx); err != nil {
		a.Logger.WarnContext(ctx, "start not noted in the audit log", "err", err)
	}
}

func (a *App) auditStart(ctx context.Context) error {
	audit := a.Stores.Audit
	target := "replica " + a.name.Name()
	var before core.StartDetails
	last, err := audit.Last(ctx, core.AuditConfigChanged, target)
	if err == nil {
		err = json.Unmarshal(last.Details, &before)
	}
	if err != nil && !errors.Is(err, core.ErrNotFound) {
		return err
	}
	now := core.StartDetails{Version: a.version, Settings: a.Config.Changed()}
	out := map[string]core.SettingChange{}
	for _, key := range slices.Concat(slices.Collect(maps.Keys(before.Settings)), slices.Collect(maps.Keys(now.Settings))) {
		if before.Settings[key] != now.Settings[key] {
			out[key] = core.SettingChange{From: before.Settings[key], To: now.Settings[key]}
		}
	}
	now.Changed = out
	if err == nil && now.Version == before.Version && len(now.Changed) == 0 {
		return nil
	}
	details, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return audit.Add(ctx, core.AuditEntry{
		ID: core.NewID[core.AuditID](), CreatedAt: core.Now(), Actor: "server", Action: core.AuditConfigChanged, Target: target, Details: details,
	})
}
