package agents

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
)

// Patterns of definitions.
const (
	toolNamePattern = `^[a-zA-Z0-9]([a-zA-Z0-9_-]{0,62}[a-zA-Z0-9])?$`
	variablePattern = `^[A-Za-z_][A-Za-z0-9_]*$`
)

// checkDefinition notes what is wrong with a definition, whose fields have the right types. Prefix
// is of its fields in faults: empty, or such as "tools[1].".
func (d *document) checkDefinition(def core.ToolDefinition, prefix string, known KnownParts) {
	d.checkDefinitionName(def, prefix, known)
	if !d.checkKind(def, prefix, known) {
		return
	}
	d.checkToolKeys(def, prefix)
	d.checkToolLimits(prefix, core.ToolSetting{Approval: def.Approval, Timeout: def.Timeout, MaxOutputBytes: def.MaxOutputBytes})
	d.checkHosts(prefix+"private_hosts", def.PrivateHosts)
	d.checkProcess(def, prefix)
	d.checkHeaders(def, prefix)
	d.checkOAuth(def, prefix)
	d.checkRequest(def, prefix)
	d.checkParameterSchema(def, prefix)
}

func (d *document) checkDefinitionName(def core.ToolDefinition, prefix string, known KnownParts) {
	at := prefix + "name"
	switch {
	case def.Name == "": // missing: checkToolKeys
	case !regexp.MustCompile(toolNamePattern).MatchString(def.Name), strings.Contains(def.Name, core.ToolSeparator):
		d.faultAt(at, "name %q is not allowed; use 1 to 64 letters, digits, - and _, without two _ in a row, with a letter or digit first and last", core.Clip(def.Name, 100))
	case def.HasGroup() && len(def.Name) > maxGroupName:
		d.faultAt(at, "name %q has %d letters; use at most %d, as it is the beginning of the names of several tools", def.Name, len(def.Name), maxGroupName)
	case slices.Contains(known.Tools, def.Name) || def.Name == core.ToolFetchURL:
		d.faultAt(at, "%s is a built-in tool; choose another name", def.Name)
	}
}

// checkKind reports whether the kind is one that files may describe.
func (d *document) checkKind(def core.ToolDefinition, prefix string, known KnownParts) bool {
	at := prefix + "kind"
	words := ToolKeys()[1].words
	switch {
	case def.Kind == "" && !d.hasField(at):
		d.faultAt(strings.TrimSuffix(prefix, "."), "kind is missing; use one of %s", strings.Join(words, ", "))
	case !slices.Contains(core.ToolKinds(), def.Kind):
		d.faultAt(at, "kind %q does not exist; %s", core.Clip(string(def.Kind), 100), suggestWord(string(def.Kind), words))
	case !slices.Contains(known.Kinds, def.Kind):
		d.leaveOut(def.Name, switchedOff(def))
	default:
		return true
	}
	return false
}

// leaveOut notes that a tool is switched off, which is no fault: the agent is without it.
func (d *document) leaveOut(name, reason string) {
	if d.off == nil {
		d.off = map[string]string{}
	}
	d.off[name] = reason
}

// checkToolKeys checks that the definition has the keys of its kind, and no others, and their words
// and ranges.
func (d *document) checkToolKeys(def core.ToolDefinition, prefix string) {
	for _, k := range ToolKeys() {
		at := prefix + k.Path
		if !d.hasField(at) {
			if slices.Contains(k.Required, def.Kind) {
				d.faultAt(strings.TrimSuffix(prefix, "."), "%s is missing", k.Path)
			}
			continue
		}
		if !k.Has(def.Kind) {
			d.faultAt(at, "%s is not for the kind %s; remove it", at, def.Kind)
			continue
		}
		value, set := fieldValue(reflect.ValueOf(def), k.Path)
		switch {
		case k.Path == "kind":
		case !set && slices.Contains(k.Required, def.Kind):
			d.faultAt(at, "%s is empty", at)
		case k.Path == "approval": // with its meanings: checkToolLimits
		default:
			if problem := k.problemOf(value, set); problem != "" {
				d.faultAt(at, "%s %s", at, problem)
			}
		}
	}
	if len(def.Description) > maxToolText {
		d.faultAt(prefix+"description", "description has %d bytes; use at most %d", len(def.Description), maxToolText)
	}
	if n := len(def.Operations); n > maxOperations {
		d.faultAt(prefix+"operations", "operations has %d entries; use at most %d", n, maxOperations)
	}
	for _, list := range []struct {
		key string
		n   int
	}{{"args", len(def.Args)}, {"env", len(def.Env)}, {"query", len(def.Query)}, {"headers", len(def.Headers)}, {"oauth.scopes", len(def.OAuth.Scopes)}, {"oauth.parameters", len(def.OAuth.Parameters)}} {
		if list.n > maxToolEntries {
			d.faultAt(prefix+list.key, "%s has %d entries; use at most %d", list.key, list.n, maxToolEntries)
		}
	}
}

// checkProcess checks what starts a program.
func (d *document) checkProcess(def core.ToolDefinition, prefix string) {
	if def.Kind == core.ToolMCP && (def.Command == "") == (def.URL == "") {
		d.faultAt(strings.TrimSuffix(prefix, "."), "write either command, for a server that Bobbin starts, or url, for one that runs already")
	}
	if def.Kind == core.ToolMCP && def.Command != "" {
		for _, key := range []string{"headers", "bearer", "oauth", "private_hosts"} {
			if at := prefix + key; d.hasField(at) {
				d.faultAt(at, "%s is for a server with url; remove it", at)
			}
		}
	}
	if def.Kind == core.ToolMCP && def.URL != "" {
		for _, key := range []string{"args", "env", "dir"} {
			if at := prefix + key; d.hasField(at) {
				d.faultAt(at, "%s is for a server with command; remove it", at)
			}
		}
	}
	for i, entry := range def.Env {
		name, _, _ := strings.Cut(entry, "=")
		if at := fmt.Sprintf("%senv[%d]", prefix, i); !regexp.MustCompile(variablePattern).MatchString(name) {
			d.faultAt(at, "%s is not a variable; write NAME, or NAME=value", at)
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
		case isReservedHeader(name):
			d.faultAt(at, "%s is a header that the request has by itself; remove it", at)
		case len(value) > maxToolValue || strings.ContainsAny(value, "\r\n\x00"):
			d.faultAt(at, "%s must be one line of at most %d bytes", at, maxToolValue)
		case tools.CheckVariables(value) != nil:
			d.faultAt(at, "%s: %s", at, tools.CheckVariables(value))
		}
	}
	if at := prefix + "bearer"; def.Bearer != "" && !regexp.MustCompile(variablePattern).MatchString(def.Bearer) {
		d.faultAt(at, "%s must be the name of a variable of the environment, not the token itself", at)
	}
	if at := prefix + "idempotency_key"; def.IdempotencyKey != "" && (!tools.IsHeaderName(def.IdempotencyKey) || isReservedHeader(def.IdempotencyKey)) {
		d.faultAt(at, "%s is not the name of a header", at)
	}
}

// checkOAuth checks how access tokens are requested. Values are in no fault.
func (d *document) checkOAuth(def core.ToolDefinition, prefix string) {
	at := prefix + "oauth"
	if !d.hasField(at) || def.Kind != core.ToolMCP {
		return
	}
	o := def.OAuth
	for _, key := range [][2]string{{"token_url", o.TokenURL}, {"client_id", o.ClientID}, {"client_secret", o.ClientSecret}} {
		if key[1] == "" {
			d.faultAt(at, "%s.%s is missing", at, key[0])
		}
	}
	if o.TokenURL != "" && tools.CheckAddress(o.TokenURL) != nil {
		d.faultAt(at+".token_url", "%s.token_url %s", at, tools.CheckAddress(o.TokenURL))
	} else if u, err := url.Parse(o.TokenURL); err == nil && u.Scheme == "http" && !slices.Contains(def.PrivateHosts, u.Hostname()) {
		d.faultAt(at+".token_url", "%s.token_url must be https, because it gets the secret; http is for hosts of private_hosts", at)
	}
	if o.ClientSecret != "" && !regexp.MustCompile(variablePattern).MatchString(o.ClientSecret) {
		d.faultAt(at+".client_secret", "%s.client_secret must be the name of a variable of the environment, not the secret itself", at)
	}
	if def.Bearer != "" {
		d.faultAt(at, "write either bearer, for a token that is there, or oauth, for tokens that a token server issues")
	}
}

// checkRequest checks the addresses and what stands for arguments in them.
func (d *document) checkRequest(def core.ToolDefinition, prefix string) {
	for key, address := range map[string]string{"url": def.URL, "server": def.Server} {
		if address == "" {
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
			d.faultAt(prefix+fault.Key, "%s%s %s", prefix, fault.Key, fault.Problem)
		}
	}
	if at := prefix + "result"; def.Result != "" && !strings.HasPrefix(def.Result, "/") {
		d.faultAt(at, "%s is not a JSON Pointer; begin with /, such as /items/0/name", at)
	}
	if at := prefix + "document"; strings.Contains(def.Document, "://") {
		u, err := url.Parse(def.Document)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			d.faultAt(at, "%s is not the address of a document; write a file, or an address with http or https", at)
		}
	}
}

func (d *document) checkParameterSchema(def core.ToolDefinition, prefix string) {
	if at := prefix + "parameters"; len(def.Parameters) > 0 && !d.broken[at] {
		if _, err := tools.CompileSchema(def.Parameters); err != nil {
			d.faultAt(at, "%s: %s", at, err)
		}
	}
}

// checkDocument checks the operations against the document, if it is a file, and returns the hash of
// the document.
func (d *document) checkDocument(def core.ToolDefinition, prefix string) (hash string) {
	if def.Kind != core.ToolOpenAPI || strings.Contains(def.Document, "://") {
		return ""
	}
	hash, fault := tools.CheckOpenAPI(def)
	if fault != nil {
		key := prefix + fault.Key
		d.faultAt(key, "%s: %s", key, fault.Problem)
	}
	return hash
}

// checkToolLimits checks what holds for each call of a tool.
func (d *document) checkToolLimits(prefix string, s core.ToolSetting) {
	modes := []core.ApprovalMode{core.ApprovalAlways, core.ApprovalFirst, core.ApprovalNever}
	if path := prefix + "approval"; d.hasField(path) && !slices.Contains(modes, s.Approval) {
		d.faultAt(path, "%s is %q; use always (a person must agree to every call), first (until one was approved in the session) or never", path, core.Clip(string(s.Approval), 100))
	}
	limit := time.Duration(s.Timeout)
	if path := prefix + "timeout"; d.hasField(path) && (limit < leastToolTime || limit > mostToolTime) {
		d.faultAt(path, "%s is out of range; use %s to %s", path, leastToolTime, mostToolTime)
	}
	if path := prefix + "max_output_bytes"; d.hasField(path) && (s.MaxOutputBytes < leastToolOutput || s.MaxOutputBytes > core.MaxToolResult) {
		d.faultAt(path, "%s is %d; use %d to %d", path, s.MaxOutputBytes, leastToolOutput, core.MaxToolResult)
	}
}

func (d *document) checkHosts(path string, hosts []string) {
	for _, host := range hosts {
		if !regexp.MustCompile(hostPattern).MatchString(host) {
			d.faultAt(path, "%s: %q is not the name of a host; write example.com, or *.example.com for all below it", path, core.Clip(host, 100))
		}
	}
}
