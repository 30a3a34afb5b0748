package agents

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/netguard"
)

// maxGroupName bounds the name of what stands for several tools.
const maxGroupName = 32

// readDefinition reads a definition, whose fields have the right form, and notes what is wrong with it.
// Prefix is of its fields in faults: empty, or such as "tools[1].".
func (d *document) readDefinition(text json.RawMessage, prefix string, known KnownParts) core.ToolDefinition {
	def := core.ToolDefinition{File: d.path}
	before := len(d.faults)
	if err := json.Unmarshal(text, &def); err != nil {
		d.faultAt(strings.TrimSuffix(prefix, "."), "it cannot be read: %s", err)
		return def
	}
	switch at := prefix + "name"; {
	case def.HasGroup() && len(def.Name) > maxGroupName:
		d.faultAt(at, "name %q has %d letters; use at most %d, as it is the beginning of the names of several tools", def.Name, len(def.Name), maxGroupName)
	case slices.Contains(known.Tools, def.Name) || def.Name == core.ToolFetchURL:
		d.faultAt(at, "%s is a built-in tool; choose another name", def.Name)
	}
	if !slices.Contains(known.Kinds, def.Kind) {
		d.off[def.Name] = switchedOff(def) // no fault: the agent is without it
		return def
	}
	d.checkToolKeys(def, prefix)
	d.checkServer(def, prefix)
	d.checkHeaders(def, prefix)
	d.checkOAuth(def, prefix)
	d.checkRequest(def, prefix)
	if len(d.faults) == before && def.Kind == core.ToolOpenAPI && !strings.Contains(def.Document, "://") { // a file
		hash, fault := tools.CheckOpenAPI(def)
		if fault != nil {
			d.faultAt(prefix+fault.Field, "%s%s: %s", prefix, fault.Field, fault.Detail)
		}
		def.DocumentHash = hash
	}
	return def
}

// checkToolKeys checks that the definition has the keys of its kind, and no others.
func (d *document) checkToolKeys(def core.ToolDefinition, prefix string) {
	for _, k := range ToolKeys() {
		at := prefix + k.Path
		switch has := d.hasField(at); {
		case !has && slices.Contains(k.Required, def.Kind):
			d.faultAt(strings.TrimSuffix(prefix, "."), "%s is missing", k.Path)
		case has && !k.Has(def.Kind):
			d.faultAt(at, "%s is not for the kind %s; remove it", at, def.Kind)
		}
	}
	if at := prefix + "parameters"; len(def.Parameters) > 0 {
		var faults core.Faults
		if CheckSchema(&faults, at, def.Parameters); len(faults) > 0 {
			d.faultAt(at, "%s %s", at, faults[0].Detail)
		} else if _, err := tools.CompileSchema(def.Parameters); err != nil {
			d.faultAt(at, "%s: %s", at, err)
		}
	}
}

// checkServer checks whether a server of MCP is started or runs already.
func (d *document) checkServer(def core.ToolDefinition, prefix string) {
	if def.Kind != core.ToolMCP {
		return
	}
	if (def.Command == "") == (def.URL == "") {
		d.faultAt(strings.TrimSuffix(prefix, "."), "write either command, for a server that Bobbin starts, or url, for one that runs already")
		return
	}
	other, keys := "url", []string{"headers", "bearer", "oauth", "private_hosts"}
	if def.URL != "" {
		other, keys = "command", []string{"args", "env", "dir"}
	}
	for _, key := range keys {
		if at := prefix + key; d.hasField(at) {
			d.faultAt(at, "%s is for a server with %s; remove it", at, other)
		}
	}
}

// checkHeaders checks headers and where their secrets come from. Values are in no fault.
func (d *document) checkHeaders(def core.ToolDefinition, prefix string) {
	for _, name := range slices.Sorted(maps.Keys(def.Headers)) {
		at, value := prefix+"headers."+name, def.Headers[name]
		switch {
		case !tools.IsHeaderName(name):
			d.faultAt(at, "%s is not the name of a header", at)
		case slices.Contains(tools.ReservedHeaders(), http.CanonicalHeaderKey(name)):
			d.faultAt(at, "%s is a header that the request has by itself; remove it", at)
		case tools.CheckVariables(value) != nil:
			d.faultAt(at, "%s: %s", at, tools.CheckVariables(value))
		}
	}
}

// checkOAuth checks how access tokens are requested. Values are in no fault.
func (d *document) checkOAuth(def core.ToolDefinition, prefix string) {
	at := prefix + "oauth"
	if !d.hasField(at) || def.Kind != core.ToolMCP {
		return
	}
	o := def.OAuth
	if tools.CheckAddress(o.TokenURL) != nil {
		d.faultAt(at+".token_url", "%s.token_url %s", at, tools.CheckAddress(o.TokenURL))
	} else if u, err := url.Parse(o.TokenURL); err == nil && u.Scheme == "http" && !slices.Contains(def.PrivateHosts, u.Hostname()) {
		d.faultAt(at+".token_url", "%s.token_url must be https, because it gets the secret; http is for hosts of private_hosts", at)
	}
	if def.Bearer != "" {
		d.faultAt(at, "write either bearer, for a token that is there, or oauth, for tokens that a token server issues")
	}
}

// checkRequest checks the addresses and what stands for arguments in them.
func (d *document) checkRequest(def core.ToolDefinition, prefix string) {
	for key, address := range map[string]string{"url": def.URL, "server": def.Server, "document": def.Document} {
		if address == "" || key == "document" && !strings.Contains(address, "://") { // a file
			continue
		}
		if err := tools.CheckAddress(address); err != nil {
			d.faultAt(prefix+key, "%s%s %s", prefix, key, err)
		} else if key == "server" && strings.ContainsAny(address, "{}?#") {
			d.faultAt(prefix+key, "%s%s must end with its path, without a query and without {argument}", prefix, key)
		}
	}
	if def.Kind == core.ToolHTTP {
		for _, fault := range tools.CheckRequest(def) {
			d.faultAt(prefix+fault.Field, "%s%s %s", prefix, fault.Field, fault.Detail)
		}
	}
}

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
