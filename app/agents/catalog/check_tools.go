package catalog

import (
	"maps"
	"regexp"
	"slices"
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
func (d *document) checkToolSettings(agent core.Agent, known Known) {
	for _, tool := range slices.Sorted(maps.Keys(agent.ToolSettings)) {
		at := "tool_settings." + tool
		switch {
		case slices.Contains(agent.Tools, tool):
			d.checkToolSetting(at, tool, agent.ToolSettings[tool], known)
		case known.Tools == nil || slices.Contains(known.Tools, tool) || known.Off[tool] != "":
			d.faultAt(at, "%s: the agent does not have the tool; add it to tools", at)
		default:
			d.faultAt(at, "%s: tool %q does not exist; %s", at, tool, suggestion(tool, agent.Tools))
		}
	}
}

func (d *document) checkToolSetting(at, tool string, s core.ToolSetting, known Known) {
	for _, field := range ownSettings() {
		if path := at + "." + field; d.has(path) && known.Settings != nil && !slices.Contains(known.Settings[tool], field) {
			has := append(commonSettings(), known.Settings[tool]...)
			d.faultAt(path, "%s: %s has no such setting; %s", path, tool, suggestion(field, has))
		}
	}
	if path := at + ".approval"; d.has(path) && s.Approval != core.ApprovalAlways && s.Approval != core.ApprovalFirst {
		d.faultAt(path, "%s is %q; use always (a person must agree to every call) or first (until one was approved in the session)", path, core.Clip(string(s.Approval), 100))
	}
	limit := time.Duration(s.Timeout)
	if path := at + ".timeout"; d.has(path) && (limit < leastToolTime || limit > mostToolTime) {
		d.faultAt(path, "%s is out of range; use %s to %s", path, leastToolTime, mostToolTime)
	}
	if path := at + ".max_output_bytes"; d.has(path) && (s.MaxOutputBytes < leastToolOutput || s.MaxOutputBytes > core.MaxToolResult) {
		d.faultAt(path, "%s is %d; use %d to %d", path, s.MaxOutputBytes, leastToolOutput, core.MaxToolResult)
	}
	if path := at + ".max_bytes"; d.has(path) && (s.MaxBytes < leastPage || s.MaxBytes > mostPage) {
		d.faultAt(path, "%s is %d; use %d to %d", path, s.MaxBytes, leastPage, mostPage)
	}
	for _, host := range s.AllowHosts {
		if path := at + ".allow_hosts"; !regexp.MustCompile(hostPattern).MatchString(host) {
			d.faultAt(path, "%s: %q is not the name of a host; write example.com, or *.example.com for all below it", path, core.Clip(host, 100))
		}
	}
}
