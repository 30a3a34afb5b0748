package wire

import (
	"path/filepath"

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
