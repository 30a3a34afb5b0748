package agents

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
)

// ToolKey is a key of the definition of a tool. The table of keys is the source of the table in
// docs/TOOLS.md and of the checks of which kind has which key.
type ToolKey struct {
	FileKey

	Kinds    []core.ToolKind // that have it; none = all
	Required []core.ToolKind // that need it
}

// Has reports whether definitions of the kind have the key.
func (k ToolKey) Has(kind core.ToolKind) bool {
	return len(k.Kinds) == 0 || slices.Contains(k.Kinds, kind)
}

// ToolKeys returns every key of the definition of a tool, in the order of the documentation.
func ToolKeys() []ToolKey {
	keys := slices.Concat(commonToolKeys(), processKeys(), requestKeys(), groupKeys())
	for i, k := range keys {
		keys[i].Type = typeName(fieldAt(reflect.TypeFor[core.ToolDefinition](), k.Path))
		if k.Bounds == "" && len(k.words) > 0 {
			keys[i].Bounds = "`" + strings.Join(k.words, "`, `") + "`"
		}
	}
	return keys
}

// Bounds of definitions.
const (
	maxGroupName   = 32
	maxToolText    = 4 << 10 // bytes of a description
	maxToolEntries = 64      // of a list or a section
	maxToolValue   = 4 << 10 // bytes of a value
	maxOperations  = 128
	leastMemory    = 16 // MiB
	mostMemory     = 64 << 10
)

func kinds(list ...core.ToolKind) []core.ToolKind { return list }

func commonToolKeys() []ToolKey {
	words := make([]string, 0, len(core.ToolKinds()))
	for _, kind := range core.ToolKinds() {
		words = append(words, string(kind))
	}
	return []ToolKey{
		{FileKey: FileKey{Path: "name", Default: "required", Meaning: "the tool's name for models and in the list `tools` of agents' files; of `mcp` and `openapi` the beginning of the names of its tools: `name__tool`", Bounds: fmt.Sprintf("1 to 64 letters, digits, `-` and `_` without `__`; 1 to %d for `mcp` and `openapi`", maxGroupName)}, Required: core.ToolKinds()},
		{FileKey: FileKey{Path: "kind", Default: "required", Meaning: "what the tool is made of", words: words}, Required: core.ToolKinds()},
		{FileKey: FileKey{Path: "description", Meaning: "what the tool does and when to use it, for the model", Bounds: fmt.Sprintf("at most %d bytes", maxToolText)}, Kinds: kinds(core.ToolHTTP, core.ToolCommand), Required: kinds(core.ToolHTTP, core.ToolCommand)},
		{FileKey: FileKey{Path: "parameters", Default: "no arguments", Meaning: "the JSON Schema of the arguments, an object, written as YAML", Bounds: fmt.Sprintf("at most %d KiB of JSON, %d levels", maxSchemaBytes>>10, maxSchemaDepth)}, Kinds: kinds(core.ToolHTTP, core.ToolCommand)},
		{FileKey: FileKey{Path: "approval", Default: "`never` for what only reads (`GET`, `HEAD`, MCP's `readOnlyHint`), else `always`", Meaning: "whether a person must approve a call; an agent's `tool_settings` override it", words: []string{string(core.ApprovalAlways), string(core.ApprovalFirst), string(core.ApprovalNever)}}},
		{FileKey: FileKey{Path: "timeout", Default: "`limits.tool_time`", Meaning: "how long one call may take", Bounds: fmt.Sprintf("%s to %s", leastToolTime, mostToolTime)}},
		{FileKey: FileKey{Path: "max_output_bytes", Default: "`limits.tool_shown_bytes`", Meaning: "how much of a result prompts show; `read_result` reads the rest", Bounds: fmt.Sprintf("%d to %d", leastToolOutput, core.MaxToolResult)}},
	}
}

func processKeys() []ToolKey {
	program := kinds(core.ToolMCP, core.ToolCommand)
	return []ToolKey{
		{FileKey: FileKey{Path: "command", Meaning: "the program, without a shell; a server of `mcp` speaks on its standard input and output", Bounds: "a path, or a name in Bobbin's `PATH`"}, Kinds: program, Required: kinds(core.ToolCommand)},
		{FileKey: FileKey{Path: "args", Meaning: "its arguments, as they are", Bounds: fmt.Sprintf("at most %d", maxToolEntries)}, Kinds: program},
		{FileKey: FileKey{Path: "env", Default: "`PATH`, `HOME`", Meaning: "its whole environment: `NAME` takes the variable from Bobbin's, `NAME=value` sets it", Bounds: fmt.Sprintf("at most %d", maxToolEntries)}, Kinds: program},
		{FileKey: FileKey{Path: "dir", Default: "the file's folder", Meaning: "the folder in which it starts"}, Kinds: program},
		{FileKey: FileKey{Path: "max_memory_mib", Default: fmt.Sprint(tools.DefaultMemory >> 20), Meaning: "the data of one process, in MiB; Linux only", within: numberBounds(leastMemory, mostMemory), Bounds: fmt.Sprintf("%d to %d", leastMemory, mostMemory)}, Kinds: kinds(core.ToolCommand)},
	}
}

func requestKeys() []ToolKey {
	web := kinds(core.ToolMCP, core.ToolHTTP, core.ToolOpenAPI)
	requests := kinds(core.ToolHTTP)
	return []ToolKey{
		{FileKey: FileKey{Path: "url", Meaning: "the address: of the server (`mcp`), or of the request (`http`), where `{argument}` stands for an argument in the path or the query", Bounds: "`http` or `https`"}, Kinds: kinds(core.ToolMCP, core.ToolHTTP), Required: requests},
		{FileKey: FileKey{Path: "method", Default: "`GET`", Meaning: "the method. `POST`, `PUT` and `PATCH` send the arguments that the URL and the query do not use as a JSON object", words: tools.HTTPMethods()}, Kinds: requests},
		{FileKey: FileKey{Path: "query", Meaning: "parameters of the query; `{argument}` stands for an argument, and a parameter whose argument is missing is left out", Bounds: fmt.Sprintf("at most %d", maxToolEntries)}, Kinds: requests},
		{FileKey: FileKey{Path: "headers", Meaning: "headers of every request; `${NAME}` stands for a variable of Bobbin's environment", Bounds: fmt.Sprintf("at most %d", maxToolEntries)}, Kinds: web},
		{FileKey: FileKey{Path: "bearer", Meaning: "the variable of Bobbin's environment with the token for `Authorization: Bearer`", Bounds: "the name of a variable"}, Kinds: web},
		{FileKey: FileKey{Path: "oauth.token_url", Meaning: "the token server that issues access tokens for the server by the grant `client_credentials` (OAuth 2.1), instead of `bearer`", Bounds: "`https`; `http` for `private_hosts`"}, Kinds: kinds(core.ToolMCP)},
		{FileKey: FileKey{Path: "oauth.client_id", Meaning: "Bobbin's id there"}, Kinds: kinds(core.ToolMCP)},
		{FileKey: FileKey{Path: "oauth.client_secret", Meaning: "the variable of Bobbin's environment with its secret", Bounds: "the name of a variable"}, Kinds: kinds(core.ToolMCP)},
		{FileKey: FileKey{Path: "oauth.scopes", Default: "those of the token server", Meaning: "what the tokens are for", Bounds: fmt.Sprintf("at most %d", maxToolEntries)}, Kinds: kinds(core.ToolMCP)},
		{FileKey: FileKey{Path: "oauth.parameters", Default: "`resource`: the `url`", Meaning: "more parameters of the token request, such as `audience`", Bounds: fmt.Sprintf("at most %d", maxToolEntries)}, Kinds: kinds(core.ToolMCP)},
		{FileKey: FileKey{Path: "private_hosts", Default: "public hosts only", Meaning: "hosts that may be reached although their addresses are not public, such as `localhost`", Bounds: "names such as `example.com`, `*.example.com` or `127.0.0.1`"}, Kinds: web},
		{FileKey: FileKey{Path: "result", Default: "the whole answer", Meaning: "the part of a JSON answer that the model gets: a JSON Pointer (RFC 6901) such as `/items/0/name`"}, Kinds: requests},
		{FileKey: FileKey{Path: "idempotent", Default: "`true` for `GET` and `HEAD`", Meaning: "whether a call that a crash interrupted may be repeated"}, Kinds: kinds(core.ToolHTTP, core.ToolCommand)},
		{FileKey: FileKey{Path: "idempotency_key", Default: "`Idempotency-Key`", Meaning: "the header with a key of the call, in requests that are not `GET` or `HEAD`"}, Kinds: kinds(core.ToolHTTP, core.ToolOpenAPI)},
	}
}

func groupKeys() []ToolKey {
	openapi, server := kinds(core.ToolOpenAPI), kinds(core.ToolMCP)
	return []ToolKey{
		{FileKey: FileKey{Path: "document", Meaning: "the OpenAPI document (3.0 or 3.1), JSON or YAML: a file, relative to this one's folder, or a URL", Bounds: fmt.Sprintf("at most %d MiB, without external references", tools.MaxDocument>>20)}, Kinds: openapi, Required: openapi},
		{FileKey: FileKey{Path: "operations", Meaning: "the `operationId` of each operation that becomes a tool", Bounds: fmt.Sprintf("1 to %d", maxOperations)}, Kinds: openapi, Required: openapi},
		{FileKey: FileKey{Path: "server", Default: "the first of the operation's, the path's or the document's `servers`", Meaning: "the address that the paths are appended to"}, Kinds: openapi},
		{FileKey: FileKey{Path: "only", Default: "all", Meaning: "the server's tools that agents get, by the server's names"}, Kinds: server},
		{FileKey: FileKey{Path: "resources", Default: "false", Meaning: "adds the tool `name__read_resource`"}, Kinds: server},
		{FileKey: FileKey{Path: "prompts", Default: "false", Meaning: "adds the tool `name__get_prompt`"}, Kinds: server},
	}
}

// isReservedHeader reports whether a request has the header by itself.
func isReservedHeader(name string) bool {
	return slices.Contains(tools.ReservedHeaders(), http.CanonicalHeaderKey(name))
}
