package app

import (
	"context"
	"errors"
	"io/fs"

	"bobbin/app/core"
	"bobbin/app/wire"
)

// ReloadAgents reads the agents' files again. What begins from now on has the new agents;
// runs at work keep those that they began with. It returns what became of each file: one that
// is broken keeps the agent that it had.
func (a *App) ReloadAgents(ctx context.Context) ([]core.AgentFile, error) {
	files, err := a.agents.Catalog.Reload(a.Config.AgentsDir, a.agents.Known, a.Config.DefaultAgent)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, core.Errorf(core.ErrUnprocessable, "nothing was changed: there is no folder %s; create it, or set agents_dir", a.Config.AgentsDir)
	case err != nil:
		return nil, core.Errorf(core.ErrUnprocessable, "nothing was changed: %v", err)
	}
	a.agents.Tools.Use(a.agents.Catalog.List())
	a.Labels.Set(a.Config, a.Models, a.agents)
	for _, f := range files {
		switch f.Change {
		case core.AgentUnchanged:
		case core.AgentBroken:
			a.Logger.WarnContext(ctx, "agent's file is broken, the agent stays as it was", "file", f.File, "agent", f.Agent, "tool", f.Tool, "problems", f.Problems)
		case core.AgentAdded, core.AgentChanged, core.AgentRemoved:
			a.Logger.InfoContext(ctx, "agent reloaded", "file", f.File, "agent", f.Agent, "tool", f.Tool, "change", f.Change, "version", f.Version)
		}
	}
	wire.WarnUnusable(ctx, a.Models, a.agents.Catalog.List(), a.Logger)
	return files, nil
}
