package core

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// ToolKind is what a tool of a file is made of.
type ToolKind string

// The kinds of tools that files describe.
const (
	ToolMCP     ToolKind = "mcp"     // the tools of an MCP server
	ToolHTTP    ToolKind = "http"    // one HTTP request
	ToolOpenAPI ToolKind = "openapi" // operations of an OpenAPI document
	ToolCommand ToolKind = "command" // a program
)

// ToolKinds returns all kinds, in the order of the documentation.
func ToolKinds() []ToolKind { return []ToolKind{ToolMCP, ToolHTTP, ToolOpenAPI, ToolCommand} }

// ToolDefinition describes a tool, or the tools of a server or a document. It comes from an
// agent's file or from a file of its own. Fields that its kind does not have are zero.
type ToolDefinition struct {
	Name           string       `json:"name"`
	Kind           ToolKind     `json:"kind"`
	Description    string       `json:"description,omitempty"`
	Approval       ApprovalMode `json:"approval,omitempty"` // empty = as the kind has it
	Timeout        Duration     `json:"timeout,omitempty"`
	MaxOutputBytes int          `json:"max_output_bytes,omitempty"`

	Command   string   `json:"command,omitempty"` // mcp, command: the program
	Args      []string `json:"args,omitempty"`
	Env       []string `json:"env,omitempty"` // NAME, of our environment, or NAME=value
	Dir       string   `json:"dir,omitempty"`
	MaxMemory int      `json:"max_memory_mib,omitempty"` // command: MiB; 0 = the default

	URL          string            `json:"url,omitempty"`     // mcp, http
	Headers      map[string]string `json:"headers,omitempty"` // ${NAME} is a variable of our environment
	Bearer       string            `json:"bearer,omitempty"`  // the variable with the token
	OAuth        OAuthClient       `json:"oauth,omitzero"`    // mcp
	PrivateHosts []string          `json:"private_hosts,omitempty"`

	Method     string            `json:"method,omitempty"` // http
	Query      map[string]string `json:"query,omitempty"`
	Result     string            `json:"result,omitempty"` // a JSON Pointer
	Idempotent *bool             `json:"idempotent,omitempty"`

	Document   string   `json:"document,omitempty"` // openapi: a file or a URL
	Operations []string `json:"operations,omitempty"`
	Server     string   `json:"server,omitempty"` // instead of the document's
	// DocumentHash is of the content of a document that is a file.
	DocumentHash string `json:"document_hash,omitempty"`

	Only []string `json:"only,omitempty"` // mcp: the server's tools that agents get; empty = all

	Parameters json.RawMessage `json:"parameters,omitempty"` // http, command: a JSON Schema

	File string `json:"-"` // that it comes from
}

// OAuthClient is how Bobbin gets access tokens for a server: as a client of a token server, by the
// grant client_credentials of OAuth 2.1. Zero = it needs none.
type OAuthClient struct {
	TokenURL     string            `json:"token_url,omitempty"`
	ClientID     string            `json:"client_id,omitempty"`
	ClientSecret string            `json:"client_secret,omitempty"` // the variable with the secret
	Scopes       []string          `json:"scopes,omitempty"`
	Parameters   map[string]string `json:"parameters,omitempty"` // more of the token request
}

// HasGroup reports whether the definition stands for several tools, whose names begin with its
// own: name__tool.
func (d ToolDefinition) HasGroup() bool { return d.Kind == ToolMCP || d.Kind == ToolOpenAPI }

// ToolSeparator is between the name of a definition and that of one of its tools.
const ToolSeparator = "__"

// Definition returns the definition that a name in the agent's tools stands for, and whether
// there is one: the name of a definition, or of one of its tools.
func (a Agent) Definition(name string) (ToolDefinition, bool) {
	group, _, _ := strings.Cut(name, ToolSeparator)
	i := slices.IndexFunc(a.Definitions, func(d ToolDefinition) bool {
		return d.Name == name || d.Name == group && d.HasGroup()
	})
	if i < 0 {
		return ToolDefinition{}, false
	}
	return a.Definitions[i], true
}

// Duration is a time span that is written with units, such as 1m30s.
type Duration time.Duration

// MarshalText is part of encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText is part of encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}
