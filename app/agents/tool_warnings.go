package agents

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/netguard"
)

// ToolWarnings returns what will not work with a definition that is right in itself, or surprise who
// wrote it.
func ToolWarnings(d core.ToolDefinition) (warnings []string) {
	for _, address := range []string{d.URL, d.Server, d.OAuth.TokenURL} {
		u, err := url.Parse(address)
		if err != nil || slices.Contains(d.PrivateHosts, u.Hostname()) {
			continue
		}
		addr, err := netip.ParseAddr(u.Hostname())
		if err == nil && netguard.Public(addr) != nil || u.Hostname() == "localhost" {
			warnings = append(warnings, fmt.Sprintf("%s is not a public host, and calls are refused; name it in private_hosts", u.Hostname()))
		}
	}
	if d.Dir == "" && (slices.Contains(d.Args, ".") || slices.Contains(d.Args, "./")) {
		warnings = append(warnings, "the argument . is the folder of this file, with the definitions of tools; name another folder, or set dir")
	}
	if n := max(len(d.Only), len(d.Operations)); n > core.MaxTools {
		warnings = append(warnings, tools.TooMany(n))
	}
	return warnings
}
