package agents

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

//go:embed builtin/*.yaml
var builtin embed.FS

// maxFile bounds the size of an agent's file, in bytes.
const maxFile = 1 << 20

// KnownParts is what an agent's file may refer to.
type KnownParts struct {
	// Tools are the names of the tools that exist; nil = names are not checked.
	Tools []string
	// Off are tools that exist and are switched off, each with what switches it on.
	Off map[string]string
	// Model describes the model of a name, as far as it is known, and says why it cannot be
	// used; an empty name is the default model. nil = models are not checked.
	Model func(name string) (llm.Info, error)
	// Global are the context settings of all agents: those of an agent must not contradict them.
	Global contextwindow.Global

	// ToolsDir is the folder of the files that describe tools, which need not exist; empty = none.
	ToolsDir string
	// Kinds are the kinds of tools that files may describe; none = such files are not read.
	Kinds []core.ToolKind

	dropTools   bool                           // an agent whose model takes no tools has none, instead of a fault
	definitions map[string]core.ToolDefinition // of the files of ToolsDir, by name; nil = they were not read
	broken      map[string]bool                // names of such files that cannot be used, which is reported there
	off         map[string]string              // names of such files whose kind is not allowed, and why they are left out
}

// Catalog is the configured agents. Reload replaces them. Safe for concurrent use.
type Catalog struct {
	now atomic.Pointer[agentSet]

	reload sync.Mutex // held by Reload
}

// agentSet is the agents at one moment. It never changes.
type agentSet struct {
	agents map[string]core.Agent // by name
	files  map[string]string     // name of the agent that comes from a file, by the file's path
	tools  []CheckedFile         // the files of tools
}

// LoadCatalog reads the agents of the folder over the built-in ones. The folder need not
// exist. The error joins everything that is wrong, a *FileFault each.
func LoadCatalog(dir string, known KnownParts) (*Catalog, error) {
	set, files, err := readAgents(dir, known, nil)
	if set == nil || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	faults := []error{toolFaults(set.tools)}
	for _, f := range files {
		if err := set.addAgent(f); err != nil {
			faults = append(faults, err)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	c := &Catalog{}
	c.now.Store(set)
	return c, nil
}

// readAgents returns the built-in agents with the files of tools, of which a broken one keeps the tool of before, and
// the files of the folder. Without a set the error is not the folder's.
func readAgents(dir string, known KnownParts, before []CheckedFile) (*agentSet, []CheckedFile, error) {
	known, tools, err := known.withDefinitions(before)
	if err != nil {
		return nil, nil, err
	}
	set, err := loadBuiltin(known)
	if err != nil {
		return nil, nil, err
	}
	set.tools = tools
	files, err := readFolder(dir, known)
	return set, files, err
}

// loadBuiltin returns the built-in agents, without tools if the default model takes none.
func loadBuiltin(known KnownParts) (*agentSet, error) {
	shipped, err := fs.Sub(builtin, "builtin")
	if err != nil {
		return nil, err
	}
	known.dropTools = true
	files, err := readAll(shipped, "builtin", known.parseFile)
	set := &agentSet{agents: map[string]core.Agent{}, files: map[string]string{}}
	for _, f := range files {
		err = errors.Join(err, f.Err)
		set.agents[f.Agent.Name] = f.Agent
	}
	if err != nil {
		return nil, fmt.Errorf("built-in agents: %w", err)
	}
	return set, nil
}

// CatalogOf returns the catalog of these agents. Their names must differ.
func CatalogOf(agents ...core.Agent) *Catalog {
	set := &agentSet{agents: map[string]core.Agent{}}
	for _, agent := range agents {
		set.agents[agent.Name] = agent
	}
	c := &Catalog{}
	c.now.Store(set)
	return c
}

// LoadAgentFile reads one agent's file, wherever it is. The error joins everything that
// is wrong with it, a *FileFault each.
func LoadAgentFile(path string, known KnownParts) (core.Agent, error) {
	data, err := readText(os.DirFS(filepath.Dir(path)), filepath.Base(path), path)
	if err != nil {
		return core.Agent{}, err
	}
	if known.definitions == nil {
		var tools []CheckedFile
		if known, tools, err = known.withDefinitions(nil); err == nil {
			err = toolFaults(tools)
		}
		if err != nil {
			return core.Agent{}, err
		}
	}
	return parseAgent(path, data, known)
}

// Get returns the agent of the name; ErrNotFound if there is none. Its slices and
// pointers must not be changed.
func (c *Catalog) Get(name string) (core.Agent, error) {
	set := c.now.Load()
	agent, ok := set.agents[name]
	if !ok {
		return core.Agent{}, core.Errorf(core.ErrNotFound, "agent %q does not exist; there are %s", name, strings.Join(set.agentNames(), ", "))
	}
	return agent, nil
}

// List returns all agents, sorted by name.
func (c *Catalog) List() []core.Agent {
	set := c.now.Load()
	list := []core.Agent{}
	for _, name := range set.agentNames() {
		list = append(list, set.agents[name])
	}
	return list
}

// File returns the path of the file that the agent comes from; empty for a built-in one.
func (c *Catalog) File(name string) string {
	for path, agent := range c.now.Load().files {
		if agent == name {
			return path
		}
	}
	return ""
}

// Definitions returns the tools that files describe, of agents and of their own, sorted by name and file.
// The files of two agents may each have one of the same name.
func (c *Catalog) Definitions() []core.ToolDefinition {
	set := c.now.Load()
	var all []core.ToolDefinition
	for _, f := range set.tools {
		if f.Off == "" {
			all = append(all, f.Tool)
		}
	}
	for _, name := range set.agentNames() {
		all = append(all, set.agents[name].Definitions...)
	}
	all = slices.DeleteFunc(all, func(d core.ToolDefinition) bool { return d.Name == "" })
	order := func(a, b core.ToolDefinition) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.File, b.File))
	}
	slices.SortStableFunc(all, order)
	return slices.CompactFunc(all, func(a, b core.ToolDefinition) bool { return order(a, b) == 0 })
}

func (s *agentSet) agentNames() []string { return slices.Sorted(maps.Keys(s.agents)) }

// addAgent puts the agent of a file in, over a built-in one, and returns what is wrong with the file.
func (s *agentSet) addAgent(f CheckedFile) error {
	if f.Err != nil {
		return f.Err
	}
	for other, name := range s.files {
		if name == f.Agent.Name {
			return &FileFault{File: f.Path, Problem: fmt.Sprintf("agent %s is in %s too; give one another name", name, other)}
		}
	}
	s.agents[f.Agent.Name], s.files[f.Path] = f.Agent, f.Agent.Name
	return nil
}

// readFolder reads the agents of every *.yaml of a folder on disk; fs.ErrNotExist if there is none.
func readFolder(dir string, known KnownParts) ([]CheckedFile, error) {
	if dir == "" {
		return nil, fs.ErrNotExist
	}
	return readAll(os.DirFS(dir), dir, known.parseFile)
}

// parseFile reads an agent from the text of the file.
func (k KnownParts) parseFile(f *CheckedFile, data []byte) {
	f.Agent, f.Err = parseAgent(f.Path, data, k)
}

// readAll parses every *.yaml of fsys that can be read. Folder is what fsys is called in faults.
func readAll(fsys fs.FS, folder string, parse func(f *CheckedFile, data []byte)) ([]CheckedFile, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("agents: read %s: %w", folder, err)
	}
	var files []CheckedFile
	for _, entry := range entries {
		name := entry.Name()
		f := CheckedFile{Path: filepath.Join(folder, name)}
		switch ext := filepath.Ext(name); {
		case entry.IsDir() || strings.HasPrefix(name, "."):
			continue
		case ext == ".yml":
			f.Err = &FileFault{File: f.Path, Problem: "only *.yaml is read; rename the file"}
		case ext != ".yaml":
			continue
		default:
			var data []byte
			if data, f.Err = readText(fsys, name, f.Path); f.Err == nil {
				parse(&f, data)
			}
		}
		files = append(files, f)
	}
	return files, nil
}

// readText reads one file; path is what it is called in faults.
func readText(fsys fs.FS, name, path string) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("agents: %w", err)
	}
	if !info.Mode().IsRegular() { // reading a pipe or a device might never end
		return nil, &FileFault{File: path, Problem: "it is not a regular file; write the agent to one"}
	}
	file, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("agents: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("agents: read %s: %w", path, err)
	}
	if len(data) > maxFile {
		return nil, &FileFault{File: path, Problem: fmt.Sprintf("the file has more than %d bytes; make it smaller", maxFile)}
	}
	return data, nil
}

// parseAgent reads an agent from the text of a file.
func parseAgent(path string, data []byte, known KnownParts) (core.Agent, error) {
	doc, err := readDocument(path, data)
	if err != nil {
		return core.Agent{}, err
	}
	doc.checkForm(agentSchema(), doc.value, "")
	list, _ := valueAt(doc.value, "tools").([]any)
	for i, item := range list {
		if _, ok := item.(map[string]any); ok {
			doc.checkForm(toolSchema(), item, fmt.Sprintf("tools[%d]", i))
		}
	}
	form := slices.Clone(doc.faults)
	var file struct {
		core.Agent
		Tools []json.RawMessage `json:"tools"` // names, and definitions
	}
	if err := json.Unmarshal(doc.text, &file); err != nil {
		return core.Agent{}, cmp.Or(doc.err(), error(&FileFault{File: path, Problem: "it cannot be read: " + err.Error()}))
	}
	agent := file.Agent
	agent.Tools = doc.readTools(file.Tools, known)
	doc.addDefinitions(&agent, known)
	doc.checkAgent(agent, known)
	// What has the wrong form is not faulted for its content, too.
	doc.faults = append(form, slices.DeleteFunc(doc.faults[len(form):], func(f *FileFault) bool {
		return slices.ContainsFunc(form, func(g *FileFault) bool { return f.Line == g.Line && f.Column == g.Column })
	})...)
	if err := doc.err(); err != nil {
		return core.Agent{}, err
	}
	if known.dropTools && known.Model != nil {
		if info, _ := known.Model(agent.Model); slices.Contains(info.Lacks, llm.Tools) { // its error is reported elsewhere
			agent.Tools = nil
		}
	}
	if agent.Tools == nil {
		agent.Tools = []string{}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.off)) { // tools that are switched off
		agent.Tools = slices.DeleteFunc(agent.Tools, func(tool string) bool { return tool == name })
		agent.Definitions = slices.DeleteFunc(agent.Definitions, func(def core.ToolDefinition) bool { return def.Name == name })
		agent.LeftOut = append(agent.LeftOut, fmt.Sprintf("the tool %s is left out: %s", name, doc.off[name]))
	}
	agent = agent.WithToolDefaults()
	agent.Version, err = agentVersion(agent)
	return agent, err
}

// agentVersion returns the first 12 hexadecimal digits of the SHA-256 of the agent and of the
// definitions of its tools as JSON: the same for the same agent, whatever its file looks like.
func agentVersion(agent core.Agent) (string, error) {
	agent.Version = ""
	canonical, err := json.Marshal(agent)
	if err == nil && len(agent.Definitions) > 0 {
		var definitions []byte
		definitions, err = json.Marshal(agent.Definitions)
		canonical = append(canonical, definitions...)
	}
	if err != nil {
		return "", fmt.Errorf("version of agent %s: %w", agent.Name, err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])[:12], nil
}
