package wire

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"bobbin/app/agents"
	"bobbin/app/agents/tools"
	"bobbin/app/agents/tools/mcp"
	"bobbin/app/chat/memories"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
	"bobbin/app/extract"
)

// Agents are the agents of the settings, with what their files may refer to.
type Agents struct {
	Catalog *agents.Catalog
	Known   agents.KnownParts
	Tools   *tools.Set
	Global  contextwindow.Global // the context settings of all agents
}

// LoadAgents reads the agents' files. Their models are checked against m, where it has
// any; context settings are checked as they will be used.
func LoadAgents(cfg config.Config, set *tools.Set, m Models) (Agents, error) {
	a := NewAgents(cfg, set, m)
	var err error
	if a.Catalog, err = agents.LoadCatalog(cfg.AgentsDir, a.Known); err != nil {
		return Agents{}, err
	}
	set.Use(a.Catalog.List())
	return a, nil
}

// NewAgents returns what agents' files are checked against, with an empty catalog.
func NewAgents(cfg config.Config, set *tools.Set, m Models) Agents {
	a := Agents{Catalog: agents.CatalogOf(), Tools: set, Global: GlobalContext(cfg)}
	a.Known = agents.KnownParts{
		Tools: set.Names(), Off: map[string]string{},
		ToolsDir: ToolsDir(cfg), Global: a.Global,
	}
	for _, kind := range cfg.Tools.Allow {
		a.Known.Kinds = append(a.Known.Kinds, core.ToolKind(kind))
	}
	if m.Registry != nil {
		a.Known.Model = m.Describe
	}
	if !cfg.Tools.FetchURL.Enabled {
		a.Known.Off[core.ToolFetchURL] = "set tools.fetch_url.enabled: true in bobbin.yaml"
	}
	return a
}

// ToolsDir returns the folder of the files that describe tools.
func ToolsDir(cfg config.Config) string { return filepath.Join(filepath.Dir(cfg.AgentsDir), "tools") }

// GlobalContext returns the context settings of all agents. The default of the threshold is the
// presets' own.
func GlobalContext(cfg config.Config) contextwindow.Global {
	g := contextwindow.Global{SummaryModel: cfg.ContextSummaryModel, SummaryRole: cfg.ContextSummaryRole}
	if cfg.ContextUsageThreshold != config.Default().ContextUsageThreshold {
		g.UsageThreshold = &cfg.ContextUsageThreshold
	}
	return g
}

// ToolParts are what the built-in tools work on. A tool whose part is nil can be listed, and not
// called.
type ToolParts struct {
	Messages core.MessageStore
	Search   core.SearchStore
	Memories *memories.Service
	Program  string       // the file of this program, which reads HTML as a child process
	Logger   *slog.Logger // nil = nothing is logged
}

// NewTools returns the built-in tools that are switched on, with what opens those that files
// describe.
func NewTools(cfg config.Config, parts ToolParts) *tools.Set {
	list := []*tools.Custom{
		tools.NewCurrentTime(time.Now), tools.NewCalculator(), tools.NewReadResult(parts.Messages), tools.NewSearchHistory(parts.Search),
		tools.NewSearchMemories(parts.Memories.Search),
	}
	if cfg.Tools.FetchURL.Enabled {
		fetch := cfg.Tools.FetchURL // of the public internet only
		ports := make([]int, 0, len(fetch.Ports))
		for _, p := range fetch.Ports {
			if n, err := strconv.Atoi(p); err == nil { // Validate has checked them
				ports = append(ports, n)
			}
		}
		list = append(list, tools.NewFetchURL(tools.NewFetcher(tools.FetcherOptions{
			Time: fetch.Time, Bytes: int64(fetch.Bytes), Ports: ports, UserAgent: "Bobbin (fetch_url)", ReadHTML: extract.NewReader(parts.Program).ReadPage,
		})))
	}
	log := parts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	web := tools.Web{Env: os.Getenv, MaxBytes: int64(cfg.Limits.ToolOutputBytes)}
	commands := tools.Command{Env: os.Getenv, MaxBytes: int(cfg.Limits.ToolOutputBytes)}
	return tools.NewSet(list...).WithSources(func(d core.ToolDefinition) tools.Source {
		var tool *tools.Custom
		var err error
		switch d.Kind {
		case core.ToolMCP:
			return mcp.NewServer(d, mcp.Options{Env: os.Getenv, Logger: log})
		case core.ToolOpenAPI:
			return tools.NewOpenAPI(d, web)
		case core.ToolHTTP:
			tool, err = tools.NewHTTP(d, web)
		case core.ToolCommand:
			tool, err = tools.NewCommand(d, commands)
		}
		if err != nil || tool == nil { // the definition was checked
			log.Error("tool cannot be used", "tool", d.Name, "err", err)
			return tools.FixedSource()
		}
		return tools.FixedSource(tool)
	}, log)
}

// sendsAnywhere is what operators are told about an agent that may send what it knows to any host.
const sendsAnywhere = "fetch_url without allow_hosts and approval: a page or a file that the agent reads can make it send what it knows to any host; " +
	"set allow_hosts, or approval: first, under tool_settings.fetch_url in the agent's file"

// CheckAgent returns the model that answers for the agent, and why it cannot be used.
func CheckAgent(m Models, agent core.Agent) (model string, err error) {
	_, err = m.Get(agent.Model)
	return cmp.Or(agent.Model, m.Choice.Model), err
}

// AgentWarnings returns why the agent has to work without tools, or models beside its own, that its file
// names, and what it may do that nobody may want.
func AgentWarnings(m Models, agent core.Agent) []string {
	warnings := slices.Clone(agent.LeftOut)
	check := func(consequence, name string) {
		if name == "" {
			return
		}
		if _, err := m.Get(name); err != nil {
			warnings = append(warnings, consequence+": "+err.Error())
		}
	}
	for _, name := range agent.FallbackModels {
		check("a fallback is skipped", name)
	}
	if name := agent.Context.SummaryModel; name != nil {
		check("summaries are made without a model", *name)
	}
	if name := agent.Compaction.SummaryModel; name != nil {
		check("notes on tool loops are made without a model", *name)
	}
	if agent.SendsAnywhere() {
		warnings = append(warnings, sendsAnywhere)
	}
	return warnings
}

// WarnOfAgents warns of each agent whose model cannot be used, of what else is in AgentWarnings, and of models that
// agents use and that keys with a limit in US dollars are refused.
func WarnOfAgents(ctx context.Context, d Deps, list []core.Agent) {
	m, log, keys := d.Models, d.Logger, DollarLimited(d.Config)
	for _, name := range m.Unpriced(d.Config, list) {
		if len(keys) > 0 {
			log.WarnContext(ctx, "a model without a price is refused to keys with usd_per_day; set input_price and output_price in models, or limit tokens_per_day",
				"model", name, "keys", keys)
		}
	}
	for _, agent := range list {
		for _, warning := range AgentWarnings(m, agent) {
			log.WarnContext(ctx, "agent may not work as its file says", "agent", agent.Name, "reason", warning)
		}
		if model, err := CheckAgent(m, agent); err != nil {
			log.WarnContext(ctx, "agent cannot be used, messages to it are refused", "agent", agent.Name, "model", model, "reason", err.Error())
		}
	}
}
