package wire

import (
	"log/slog"
	"os"
	"path/filepath"

	"bobbin/app/agents/tools"
	"bobbin/app/agents/tools/mcp"
	"bobbin/app/core"
	"bobbin/app/core/config"
)

// ToolsDir returns the folder of the files that describe tools.
func ToolsDir(cfg config.Config) string { return filepath.Join(filepath.Dir(cfg.AgentsDir), "tools") }

// toolKinds returns the kinds of tools that files may describe.
func toolKinds(cfg config.Config) []core.ToolKind {
	var kinds []core.ToolKind
	for _, kind := range cfg.Tools.Allow {
		kinds = append(kinds, core.ToolKind(kind))
	}
	return kinds
}

// newToolOpener returns what opens the tools of a definition.
func newToolOpener(cfg config.Config, log *slog.Logger) func(core.ToolDefinition) tools.Source {
	web := tools.Web{Env: os.Getenv, MaxBytes: int64(cfg.Limits.ToolOutputBytes)}
	commands := tools.Command{Env: os.Getenv, MaxBytes: int(cfg.Limits.ToolOutputBytes)}
	return func(d core.ToolDefinition) tools.Source {
		var tool *tools.Custom
		var err error
		switch d.Kind {
		case core.ToolMCP:
			return mcp.NewServer(d, mcp.Options{Env: os.Getenv, Logger: log})
		case core.ToolOpenAPI:
			return tools.NewOpenAPI(d, web)
		case core.ToolHTTP:
			tool, err = tools.NewHTTP(d, web)
		case core.ToolCommand:
			tool, err = tools.NewCommand(d, commands)
		}
		if err != nil || tool == nil { // the definition was checked
			log.Error("tool cannot be used", "tool", d.Name, "err", err)
			return tools.FixedSource()
		}
		return tools.FixedSource(tool)
	}
}
