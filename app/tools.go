package app

import (
	"context"
	"strconv"
	"time"

	"bobbin/app/agents/catalog"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/tools"
	"bobbin/app/tools/fetch"
)

// toolMessages is the message log as tools read it; nil where no tool is called.
type toolMessages interface {
	Get(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID) (core.Message, error)
}

// toolSearch finds messages as tools do; nil where no tool is called.
type toolSearch interface {
	Messages(ctx context.Context, scope core.Scope, q core.SearchQuery) (core.SearchPage, error)
}

// newTools returns the built-in tools that are switched on.
func newTools(cfg config.Config, now func() time.Time, messages toolMessages, search toolSearch) (*tools.Set, error) {
	list := []tools.Tool{tools.NewCurrentTime(now), tools.NewCalculator(), tools.NewReadResult(messages), tools.NewSearchHistory(search)}
	if cfg.Tools.FetchURL.Enabled {
		list = append(list, tools.NewFetchURL(newFetcher(cfg.Tools.FetchURL)))
	}
	return tools.NewSet(list...)
}

// newFetcher returns what reads web pages: of the public internet only.
func newFetcher(cfg config.FetchURL) *fetch.Fetcher {
	ports := make([]int, 0, len(cfg.Ports))
	for _, p := range cfg.Ports {
		if n, err := strconv.Atoi(p); err == nil { // Validate has seen them
			ports = append(ports, n)
		}
	}
	return fetch.New(fetch.Options{Time: cfg.Time, Bytes: int64(cfg.Bytes), Ports: ports, UserAgent: "Bobbin (fetch_url)"})
}

// loadAgents reads the agents' files; the context settings of each are checked as
// they will be used, and their models where there are models to check them against.
func loadAgents(cfg config.Config, set *tools.Set, global contextwindow.Global, models *llm.Registry) (*catalog.Catalog, error) {
	known := catalog.Known{
		Tools: set.Names(), Settings: map[string][]string{}, Off: map[string]string{},
		Validate: func(agent core.Agent) error {
			_, err := contextwindow.Resolve(global, agent.Context)
			return err
		},
	}
	if models != nil {
		known.Model = func(name string) error {
			_, err := models.Resolve(name)
			return err
		}
	}
	for _, name := range set.Names() {
		if tool, ok := set.Lookup(name); ok {
			if t, ok := tool.(tools.Configurable); ok {
				known.Settings[name] = t.Settings()
			}
		}
	}
	if !cfg.Tools.FetchURL.Enabled {
		known.Off["fetch_url"] = "set tools.fetch_url.enabled: true in bobbin.yaml"
	}
	return catalog.Load(cfg.AgentsDir, known)
}
