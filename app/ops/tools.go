package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/wire"
)

// ToolSource is the tools of a definition as they are now.
type ToolSource struct {
	Name    string        `json:"name"`
	Kind    core.ToolKind `json:"kind"`
	File    string        `json:"file"`
	Address string        `json:"address,omitempty"` // the program or the URL
	Tools   []ListedTool  `json:"tools"`
	Problem string        `json:"problem,omitempty"` // why tools are missing; empty = none are
	Notes   []string      `json:"notes,omitempty"`   // on tools that were left out
}

// ListedTool is a tool of a source.
type ListedTool struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Approval    core.ApprovalMode `json:"approval"` // unless an agent's file says otherwise
}

// describe returns the tools in one line.
func (s ToolSource) describe() string {
	if s.Problem != "" {
		return "not available: " + s.Problem
	}
	names := make([]string, 0, len(s.Tools))
	for _, t := range s.Tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

// listTools connects to what is behind the definitions, for at most a few seconds, and returns their
// tools.
func listTools(ctx context.Context, set *tools.Set, definitions []core.ToolDefinition) []ToolSource {
	out := []ToolSource{}
	use := func(listingOf func(core.ToolDefinition) tools.Listing) {
		for _, d := range definitions {
			source := ToolSource{Name: d.Name, Kind: d.Kind, File: d.File, Address: addressOf(d), Tools: []ListedTool{}}
			listing := listingOf(d)
			source.Problem, source.Notes = listing.Problem, listing.Notes
			for _, t := range listing.Tools {
				mode := t.Approval
				if d.Approval != "" {
					mode = d.Approval
				}
				source.Tools = append(source.Tools, ListedTool{t.Definition.Name, t.Definition.Description, mode})
			}
			out = append(out, source)
		}
	}
	agent := core.Agent{Definitions: definitions}
	set.Use([]core.Agent{agent})
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = set.Run(ctx) }) // it never fails
	set.Await(ctx, agent)
	use(func(d core.ToolDefinition) tools.Listing {
		return set.Listings(core.Agent{Definitions: []core.ToolDefinition{d}})[d.Name]
	})
	cancel()
	wg.Wait()
	return out
}

// addressOf returns what a definition starts or calls.
func addressOf(d core.ToolDefinition) string {
	switch {
	case d.Command != "":
		return strings.Join(append([]string{d.Command}, d.Args...), " ")
	case d.Document != "":
		return d.Document
	default:
		return d.URL
	}
}

// MCPServers connects to the MCP servers of the files, or to the one of the name, and returns their
// tools.
func MCPServers(ctx context.Context, cfg config.Config, name string) ([]ToolSource, error) {
	agents, err := loadAgents(cfg)
	if err != nil {
		return nil, err
	}
	owners := map[string]string{} // of the agents' files
	for _, agent := range agents.Catalog.List() {
		owners[agents.Catalog.File(agent.Name)] = agent.Name + "/"
	}
	var definitions []core.ToolDefinition
	var all, found []string
	for _, d := range agents.Catalog.Definitions() {
		if d.Kind != core.ToolMCP {
			continue
		}
		full := owners[d.File] + d.Name
		all = append(all, full)
		if name == "" || name == d.Name || name == full {
			definitions, found = append(definitions, d), append(found, fmt.Sprintf("%s of %s", full, d.File))
		}
	}
	switch {
	case len(all) == 0 && (name != "" || !slices.Contains(cfg.Tools.Allow, string(core.ToolMCP))):
		return nil, core.Errorf(core.ErrNotFound, "no file describes an MCP server: %s", howToAllow(cfg))
	case name != "" && len(definitions) == 0:
		return nil, core.Errorf(core.ErrNotFound, "there is no MCP server %q; there are %s", core.Clip(name, 100), strings.Join(all, ", "))
	case name != "" && len(definitions) > 1:
		return nil, core.Errorf(core.ErrInvalid, "there are several MCP servers %q; name one: %s", core.Clip(name, 100), strings.Join(found, ", "))
	}
	set := agents.Tools
	return listTools(ctx, set, definitions), nil
}

// howToAllow says what to do if there is no server.
func howToAllow(cfg config.Config) string {
	if !slices.Contains(cfg.Tools.Allow, string(core.ToolMCP)) {
		return fmt.Sprintf("tools of the kind mcp are switched off, and the folder %s is read only for kinds that are allowed; if the files are yours, add it to tools.allow, such as --tools-allow mcp", wire.ToolsDir(cfg))
	}
	return "write one to tools/<name>.yaml (docs/TOOLS.md)"
}
