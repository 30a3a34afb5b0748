package tools

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// Set is a collection of tools by name, and of the sources of the tools that files describe. Its
// own tools never change. Safe for concurrent use.
type Set struct {
	tools    map[string]*Custom
	open     func(core.ToolDefinition) Source // nil = definitions have no tools
	log      *slog.Logger
	changed  chan struct{} // has room for one
	resolved sync.Map      // resolution by the agent's name

	mu      sync.Mutex
	sources map[string]Source // open; guarded by mu; by sourceKey
}

// NewSet returns the set of the tools.
func NewSet(tools ...*Custom) *Set {
	s := &Set{tools: make(map[string]*Custom, len(tools))}
	for _, tool := range tools {
		s.tools[tool.Definition.Name] = tool
	}
	return s
}

// Names returns the names of all tools, sorted; never nil.
func (s *Set) Names() []string {
	return append([]string{}, slices.Sorted(maps.Keys(s.tools))...)
}

// Specs returns the definitions of the named tools, sorted by name, so that a prompt's
// tool list does not depend on the order of the names. It ignores unknown and duplicate
// names: Only reports them when an agent is loaded.
func (s *Set) Specs(names []string) []llm.ToolSpec {
	specs := make([]llm.ToolSpec, 0, len(names))
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if tool, ok := s.tools[name]; ok {
			specs = append(specs, tool.Definition)
		}
	}
	return specs
}

// NewListing returns the listing of the tools, sorted by name.
func NewListing(list []*Custom) Listing {
	list = slices.SortedFunc(slices.Values(list), func(a, b *Custom) int { return cmp.Compare(a.Definition.Name, b.Definition.Name) })
	hash := sha256.New()
	for _, tool := range list {
		spec, _ := json.Marshal(tool.Definition) // a name, a text and JSON that was checked
		hash.Write(spec)
		hash.Write([]byte(tool.Approval))
	}
	return Listing{Tools: list, Hash: hex.EncodeToString(hash.Sum(nil)[:8])}
}

// find returns the tool of the name.
func (l Listing) find(name string) (*Custom, bool) {
	i, ok := slices.BinarySearchFunc(l.Tools, name, func(tool *Custom, name string) int { return cmp.Compare(tool.Definition.Name, name) })
	if !ok {
		return nil, false
	}
	return l.Tools[i], true
}

// maxName is the longest name of a function, or of an argument, that providers take.
const maxName = 64

// unfit matches what they do not take in it.
var unfit = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// FitName returns the name of a function as providers take it. One that fits stays as it is.
func FitName(name string) string { return core.Clip(unfit.ReplaceAllString(name, "_"), maxName) }

// Namer gives the tools of one definition, or the arguments of one tool, the names that models use.
type Namer struct {
	prefix string
	own    []string // the names of all: no other one gets a name that is somebody's own
	taken  map[string]bool
}

// NewNamer returns the Namer of a definition that has tools of these names.
func NewNamer(definition string, own []string) *Namer {
	return &Namer{prefix: definition + core.ToolSeparator, own: own, taken: map[string]bool{}}
}

// Name returns a name for the tool: the definition's name, __, and the tool's own in the letters that
// providers take. The same tools in the same order have the same names; two never have one, and one
// whose own name fits has that.
func (n *Namer) Name(tool string) string {
	fit := unfit.ReplaceAllString(tool, "_")
	name := n.prefix + fit
	if len(name) > maxName || n.taken[name] || fit != tool && slices.Contains(n.own, fit) {
		sum := sha256.Sum256([]byte(tool))
		tail := "_" + hex.EncodeToString(sum[:4])
		name = core.Clip(name, maxName-len(tail)) + tail
	}
	for i := 2; n.taken[name]; i++ {
		tail := fmt.Sprintf("_%d", i)
		name = core.Clip(name, maxName-len(tail)) + tail
	}
	n.taken[name] = true
	return name
}

// resolution is an agent with its tools at one moment.
type resolution struct {
	version string // of the agent as its file has it
	hashes  string // of the listings
	agent   core.Agent
	specs   []llm.ToolSpec
}

// WithSources returns the set with what opens the sources of definitions. Open must not block.
func (s *Set) WithSources(open func(core.ToolDefinition) Source, log *slog.Logger) *Set {
	s.open, s.log, s.changed = open, log, make(chan struct{}, 1)
	return s
}

// sourceKey is the same for definitions that may share a source.
func sourceKey(d core.ToolDefinition) string {
	text, _ := json.Marshal(d) // texts, numbers, and JSON that was checked
	sum := sha256.Sum256(append(text, filepath.Dir(d.File)...))
	return string(sum[:])
}

// Use opens the sources of the agents' definitions and closes those of others. What the others say
// about their tools counts from now on.
func (s *Set) Use(list []core.Agent) {
	if s.open == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[string]Source{}
	for _, agent := range list {
		for _, definition := range agent.Definitions {
			key := sourceKey(definition)
			switch source, ok := s.sources[key]; {
			case next[key] != nil:
			case ok:
				next[key] = source
				source.Accept()
			default:
				next[key] = s.open(definition)
			}
		}
	}
	s.sources = next
	core.Signal(s.changed)
}

// Run runs the sources in use until ctx ends.
func (s *Set) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	running := map[string]context.CancelFunc{}
	for {
		s.mu.Lock()
		for key, stop := range running {
			if s.sources[key] == nil {
				stop()
				delete(running, key)
			}
		}
		for key, source := range s.sources {
			if running[key] == nil {
				runCtx, stop := context.WithCancel(ctx)
				running[key] = stop
				wg.Go(func() { source.Run(runCtx); stop() })
			}
		}
		s.mu.Unlock()
		select {
		case <-s.changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// source returns the open source of a definition; nil if there is none.
func (s *Set) source(d core.ToolDefinition) Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sources[sourceKey(d)]
}

// firstWait bounds how long a run waits for the first attempt to load its tools.
const firstWait = 10 * time.Second

// Await waits until the tools of the agent were loaded once, or could not be, for at most 10 s.
func (s *Set) Await(ctx context.Context, agent core.Agent) {
	if len(agent.Definitions) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, firstWait)
	defer cancel()
	for _, definition := range agent.Definitions {
		if source := s.source(definition); source != nil {
			select {
			case <-source.Tried():
			case <-ctx.Done():
			}
		}
	}
}

// Resolve returns the agent with the tools that there are now: its list of tools has the name of
// each, its settings hold for each, its version has their hash. The definitions of the tools are
// sorted by name. With recall off the agent does not have search_history. Of more than core.MaxTools
// tools it has the first.
func (s *Set) Resolve(agent core.Agent) (core.Agent, []llm.ToolSpec) {
	if way := agent.Context.Recall; way != nil && *way == string(contextwindow.RecallOff) {
		agent.Tools = slices.DeleteFunc(slices.Clone(agent.Tools), func(name string) bool { return name == core.ToolSearchHistory })
	}
	if len(agent.Definitions) == 0 {
		return agent, s.Specs(agent.Tools)
	}
	listings := s.Listings(agent)
	var hashes strings.Builder
	for _, definition := range agent.Definitions {
		hashes.WriteString(listings[definition.Name].Hash + " ")
	}
	if known, ok := s.resolved.Load(agent.Name); ok {
		if r, ok := known.(resolution); ok && r.version == agent.Version && r.hashes == hashes.String() && agent.Version != "" {
			return r.agent, r.specs
		}
	}
	r := resolution{version: agent.Version, hashes: hashes.String()}
	r.agent, r.specs = s.resolveWith(agent, listings)
	if sum := sha256.Sum256([]byte(r.version + " " + r.hashes)); agent.Version != "" {
		r.agent.Version = hex.EncodeToString(sum[:])[:len(agent.Version)]
	}
	s.resolved.Store(agent.Name, r)
	return r.agent, r.specs
}

// TooMany says what becomes of more tools than core.MaxTools.
func TooMany(n int) string {
	return fmt.Sprintf("it has at least %d tools, and models get %d: the others are left out; name those that are needed in tools or under only", n, core.MaxTools)
}

// resolveWith returns the agent with the tools of the listings, by the names of their definitions.
func (s *Set) resolveWith(agent core.Agent, listings map[string]Listing) (core.Agent, []llm.ToolSpec) {
	out := agent
	out.Tools, out.ToolSettings = nil, core.ToolSettings{}
	for name, setting := range agent.ToolSettings {
		if _, own := agent.Definition(name); !own {
			out.ToolSettings[name] = setting
		}
	}
	var found []*Custom
	left, room := 0, core.MaxTools
	for _, name := range agent.Tools {
		if _, own := agent.Definition(name); !own {
			room--
		}
	}
	for _, name := range agent.Tools {
		definition, own := agent.Definition(name)
		if !own {
			out.Tools = append(out.Tools, name)
			continue
		}
		listing := listings[definition.Name]
		list := listing.Tools
		if definition.Name != name {
			list = nil
			if tool, ok := listing.find(name); ok {
				list = []*Custom{tool}
			}
		}
		for _, tool := range list {
			switch full := tool.Definition.Name; {
			case slices.Contains(out.Tools, full):
			case len(found) >= room:
				left++
			default:
				out.Tools, found = append(out.Tools, full), append(found, tool)
				out.ToolSettings[full] = settingOf(agent, definition, tool)
			}
		}
	}
	if left > 0 {
		s.log.Warn("agent has more tools than a model takes, some are left out", "agent", agent.Name, "most", core.MaxTools, "left_out", left)
	}
	specs := s.Specs(out.Tools)
	for _, tool := range found {
		specs = append(specs, tool.Definition)
	}
	slices.SortFunc(specs, func(a, b llm.ToolSpec) int { return strings.Compare(a.Name, b.Name) })
	if out.Tools == nil {
		out.Tools = []string{}
	}
	return out, specs
}

// settingOf returns what holds for a tool: the agent's own settings over the definition's over the tool's.
func settingOf(agent core.Agent, d core.ToolDefinition, tool *Custom) core.ToolSetting {
	setting := core.ToolSetting{Approval: cmp.Or(d.Approval, tool.Approval), Timeout: d.Timeout, MaxOutputBytes: d.MaxOutputBytes}
	for _, name := range []string{d.Name, tool.Definition.Name} {
		over := agent.ToolSettings[name]
		setting.Approval = cmp.Or(over.Approval, setting.Approval)
		if over.Timeout > 0 {
			setting.Timeout = over.Timeout
		}
		if over.MaxOutputBytes > 0 {
			setting.MaxOutputBytes = over.MaxOutputBytes
		}
	}
	return setting
}

// Find returns the tool that the agent calls by the name, as it is now; false if there is none any more.
func (s *Set) Find(agent core.Agent, name string) (*Custom, bool) {
	if tool, ok := s.tools[name]; ok {
		return tool, true
	}
	definition, ok := agent.Definition(name)
	if !ok {
		return nil, false
	}
	source := s.source(definition)
	if source == nil {
		return nil, false
	}
	tool, ok := source.Listing().find(name)
	return tool, ok
}

// Listings returns the tools of each of the agent's definitions.
func (s *Set) Listings(agent core.Agent) map[string]Listing {
	out := map[string]Listing{}
	for _, definition := range agent.Definitions {
		if source := s.source(definition); source != nil {
			out[definition.Name] = source.Listing()
		}
	}
	return out
}
