package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"bobbin/app/agents"
	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/app/wire"
)

// AgentState is an agent as the operator sees it.
type AgentState struct {
	File     string   `json:"file,omitempty"` // empty = built in
	Agent    string   `json:"agent,omitempty"`
	Tool     string   `json:"tool,omitempty"`     // that the file describes
	Model    string   `json:"model,omitempty"`    // that answers
	Usable   bool     `json:"usable"`             // with the settings and the keys that are here
	Reason   string   `json:"reason,omitempty"`   // why it is not
	Warnings []string `json:"warnings,omitempty"` // what it works without, or with what is not known, and why
	Problems []string `json:"problems,omitempty"` // of a broken file, each with file, line and column
}

// AgentFiles are the agents' files and the models of the settings, without a server.
type AgentFiles struct {
	dir    string // of the settings
	models wire.Models
	agents wire.Agents
}

// OpenAgentFiles opens the models that agents' files are checked against.
func OpenAgentFiles(ctx context.Context, cfg config.Config) (*AgentFiles, error) {
	counter := tokens.NewCounter()
	models, err := wire.OpenModels(ctx, cfg, wire.ModelOptions{Counter: counter, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return &AgentFiles{dir: cfg.AgentsDir, models: models, agents: wire.NewAgents(cfg, wire.NewTools(cfg, wire.ToolParts{}), models)}, nil
}

// Check reads files, and the *.yaml of folders, as a server would; without paths, the folder of
// the settings, which need not exist, and the built-in agents that it does not replace. An error is
// that a path cannot be read.
func (f *AgentFiles) Check(paths []string) ([]AgentState, error) {
	builtin := agents.CatalogOf()
	if len(paths) == 0 {
		known := f.agents.Known
		known.ToolsDir = ""
		var err error
		if builtin, err = agents.LoadCatalog("", known); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(f.dir); len(paths) == 0 && !errors.Is(err, fs.ErrNotExist) {
		paths = []string{f.dir}
	}
	files, err := agents.CheckFiles(paths, f.agents.Known)
	if err != nil {
		return nil, err
	}
	list := []AgentState{}
	for _, file := range files {
		state := AgentState{File: file.Path, Tool: file.Tool.Name, Usable: file.Err == nil}
		switch {
		case file.Err != nil:
			state.Problems = strings.Split(file.Err.Error(), "\n")
		case file.Off != "":
			state.Warnings = []string{"it is left out: " + file.Off}
		case file.Tool.Name == "":
			state = agentState(f.models, file.Agent, file.Path)
		default:
			state.Warnings = agents.ToolWarnings(file.Tool)
		}
		list = append(list, state)
	}
	for _, agent := range builtin.List() {
		if !slices.ContainsFunc(list, func(s AgentState) bool { return s.Agent == agent.Name }) {
			list = append(list, agentState(f.models, agent, ""))
		}
	}
	return list, nil
}

// Settings returns every key of an agent's file with the value that holds for the agent, and
// where that comes from, and the tools of each definition. It connects to the servers of tools.
func (f *AgentFiles) Settings(ctx context.Context, name string) ([]config.Origin, error) {
	catalog, err := agents.LoadCatalog(f.dir, f.agents.Known)
	if err != nil {
		return nil, err
	}
	agent, err := catalog.Get(name)
	if err != nil {
		return nil, err
	}
	resolved, err := contextwindow.Explain(f.agents.Global, agent)
	if err != nil {
		return nil, err
	}
	origin := catalog.File(name)
	if origin == "" {
		origin = "built-in agent"
	}
	var fields []config.Origin
	for _, s := range agents.Settings(agent) {
		field := config.Origin{Key: s.Path, Value: s.Value, From: "default"}
		if i := slices.IndexFunc(resolved, func(r contextwindow.Field) bool { return r.Name == s.Path && r.Value != "" }); i >= 0 {
			field.Value, field.From = resolved[i].Value, resolved[i].From
		}
		switch {
		case s.Set:
			field.From = origin
		case s.Path == "model":
			field.Value, field.From = f.models.Choice.Model, "default_llm"
		}
		fields = append(fields, field)
	}
	for _, t := range listTools(ctx, f.agents.Tools, agent.Definitions) {
		var names []string
		for _, tool := range t.Tools {
			names = append(names, tool.Name)
		}
		field := config.Origin{Key: "tools." + t.Name, Value: strings.Join(names, ", "), From: t.File}
		if t.Problem != "" {
			field.Value = "not available: " + t.Problem
		}
		fields = append(fields, field)
	}
	return fields, nil
}

// countTools returns how many tools the agent has: of a definition those that are listed, else those
// that it names, or one.
func countTools(agent core.Agent, listed []ToolSource) (n int) {
	for _, name := range agent.Tools {
		d, own := agent.Definition(name)
		i := slices.IndexFunc(listed, func(s ToolSource) bool { return s.Name == d.Name && s.File == d.File })
		switch {
		case !own || d.Name != name:
			n++
		case i >= 0:
			n += len(listed[i].Tools)
		default:
			n += max(1, len(d.Only), len(d.Operations))
		}
	}
	return n
}

// agentState returns the agent with its model, and whether that can be used.
func agentState(m wire.Models, agent core.Agent, file string) AgentState {
	model, err := wire.CheckAgent(m, agent)
	state := AgentState{File: file, Agent: agent.Name, Model: model, Usable: err == nil, Warnings: wire.AgentWarnings(m, agent)}
	if err != nil {
		state.Reason = err.Error()
	}
	for _, name := range append([]string{agent.Model}, agent.FallbackModels...) {
		if entry, err := m.Resolve(name); name != "" && err == nil && entry.WindowFrom == llm.WindowAssumed {
			state.Warnings = append(state.Warnings, fmt.Sprintf("model %s is not known here: if its provider has it, set its window in models, or %s tokens are assumed", name, core.Number(entry.Window)))
		}
	}
	if n := countTools(agent, nil); n > core.MaxTools {
		state.Warnings = append(state.Warnings, tools.TooMany(n))
	}
	return state
}

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

// listTools connects to what is behind the definitions, for at most a few seconds, and returns their
// tools.
func listTools(ctx context.Context, set *tools.Set, definitions []core.ToolDefinition) []ToolSource {
	out := []ToolSource{}
	agent := core.Agent{Definitions: definitions}
	set.Use([]core.Agent{agent})
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = set.Run(ctx) }) // it never fails
	set.Await(ctx, agent)
	for _, d := range definitions {
		source := ToolSource{Name: d.Name, Kind: d.Kind, File: d.File, Tools: []ListedTool{},
			Address: cmp.Or(strings.Join(append([]string{d.Command}, d.Args...), " "), d.Document, d.URL)}
		listing := set.Listings(core.Agent{Definitions: []core.ToolDefinition{d}})[d.Name]
		source.Problem, source.Notes = listing.Problem, listing.Notes
		for _, t := range listing.Tools {
			source.Tools = append(source.Tools, ListedTool{t.Definition.Name, t.Definition.Description, cmp.Or(d.Approval, t.Approval)})
		}
		out = append(out, source)
	}
	cancel()
	wg.Wait()
	return out
}

// MCPServers connects to the MCP servers of the files and returns their tools.
func MCPServers(ctx context.Context, cfg config.Config) ([]ToolSource, error) {
	agents, err := LoadAgents(cfg)
	if err != nil {
		return nil, err
	}
	definitions := slices.DeleteFunc(agents.Catalog.Definitions(), func(d core.ToolDefinition) bool { return d.Kind != core.ToolMCP })
	if len(definitions) == 0 && !slices.Contains(cfg.Tools.Allow, string(core.ToolMCP)) {
		return nil, core.Errorf(core.ErrNotFound, "no file describes an MCP server: tools of the kind mcp are switched off, and the folder %s is read only for kinds that are allowed; if the files are yours, add it to tools.allow, such as --tools-allow mcp", wire.ToolsDir(cfg))
	}
	return listTools(ctx, agents.Tools, definitions), nil
}
