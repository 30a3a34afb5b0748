package agents

import (
	"maps"
	"slices"
	"strings"
	"time"

	"bobbin/app/core"
)

// commonSettings are the fields of tool_settings that every tool has.
func commonSettings() []string { return []string{"approval", "timeout", "max_output_bytes"} }

// ownSettings are those that a tool must say that it has.
func ownSettings() []string { return []string{"allow_hosts", "max_bytes"} }

// Bounds of the settings of tools.
const (
	leastToolTime   = 100 * time.Millisecond
	mostToolTime    = 10 * time.Minute
	leastToolOutput = 256
	leastPage       = 1 << 10
	mostPage        = core.MaxToolResult
)

// hostPattern is what allow_hosts takes: a name, or *. and a name for those below.
const hostPattern = `^(\*\.)?[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`

// checkToolSettings checks the settings of each tool.
func (d *document) checkToolSettings(agent core.Agent, known KnownParts) {
	for _, tool := range slices.Sorted(maps.Keys(agent.ToolSettings)) {
		at := "tool_settings." + tool
		switch {
		case hasTool(agent, tool):
			d.checkToolSetting(at, tool, agent.ToolSettings[tool], known)
		case known.Tools == nil || slices.Contains(known.Tools, tool) || known.Off[tool] != "":
			d.faultAt(at, "%s: the agent does not have the tool; add it to tools", at)
		default:
			d.faultAt(at, "%s: tool %q does not exist; %s", at, tool, suggestWord(tool, agent.Tools))
		}
	}
}

func (d *document) checkToolSetting(at, tool string, s core.ToolSetting, known KnownParts) {
	for _, field := range ownSettings() {
		if path := at + "." + field; d.hasField(path) && known.Settings != nil && !slices.Contains(known.Settings[tool], field) {
			has := append(commonSettings(), known.Settings[tool]...)
			d.faultAt(path, "%s: %s has no such setting; %s", path, tool, suggestWord(field, has))
		}
	}
	d.checkToolLimits(at+".", s)
	if path := at + ".max_bytes"; d.hasField(path) && (s.MaxBytes < leastPage || s.MaxBytes > mostPage) {
		d.faultAt(path, "%s is %d; use %d to %d", path, s.MaxBytes, leastPage, mostPage)
	}
	d.checkHosts(at+".allow_hosts", s.AllowHosts)
}

// isDefined reports whether a name in the list of tools stands for a definition, or for a tool of
// one.
func (d *document) isDefined(name string, known KnownParts) bool {
	have := core.Agent{Definitions: slices.Collect(maps.Values(known.definitions))}
	for _, item := range d.inlineTools {
		have.Definitions = append(have.Definitions, item.definition)
	}
	_, ok := have.Definition(name)
	return ok
}

// toolNames returns the names that the list of tools may have.
func (d *document) toolNames(known KnownParts) []string {
	names := slices.AppendSeq(slices.Clone(known.Tools), maps.Keys(known.definitions))
	for _, item := range d.inlineTools {
		names = append(names, item.definition.Name)
	}
	return names
}

// hasTool reports whether the agent has the tool, by its own name or with its group.
func hasTool(agent core.Agent, name string) bool {
	group, _, _ := strings.Cut(name, core.ToolSeparator)
	return slices.Contains(agent.Tools, name) || group != name && slices.Contains(agent.Tools, group)
}
