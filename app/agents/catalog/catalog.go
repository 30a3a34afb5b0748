package catalog

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bobbin/app/core"
)

//go:embed builtin/*.yaml
var builtin embed.FS

// maxFile bounds the size of an agent's file, in bytes.
const maxFile = 1 << 20

// Known is what an agent's file may refer to.
type Known struct {
	// Tools are the names of the tools that exist; nil = names are not checked.
	Tools []string
	// Settings are the fields of tool_settings that a tool has besides those of all
	// tools, by the tool's name; nil = they are not checked.
	Settings map[string][]string
	// Off are tools that exist and are switched off, each with what switches it on.
	Off map[string]string
	// Model says what is wrong with a model's name; nil = names are not checked.
	Model func(name string) error
	// Validate finds settings that contradict each other, such as those of context;
	// nil = none do. Its error is reported with the line of the field that it
	// begins with, else that of context.
	Validate func(core.Agent) error
}

// Catalog is the configured agents. It never changes.
type Catalog struct {
	agents map[string]core.Agent
}

// Load reads the agents of the folder over the built-in ones. The folder need not
// exist. The error joins everything that is wrong, a *Fault each.
func Load(dir string, known Known) (*Catalog, error) {
	c := &Catalog{agents: map[string]core.Agent{}}
	shipped, err := fs.Sub(builtin, "builtin")
	if err != nil {
		return nil, err
	}
	agents, err := loadFolder(shipped, "builtin", known)
	if err != nil {
		return nil, fmt.Errorf("built-in agents: %w", err)
	}
	maps.Copy(c.agents, agents)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err != nil:
		return nil, fmt.Errorf("agents: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("agents: %s is not a folder", dir)
	}
	if agents, err = loadFolder(os.DirFS(dir), dir, known); err != nil {
		return nil, err
	}
	maps.Copy(c.agents, agents)
	return c, nil
}

// Of returns the catalog of these agents. Their names must differ.
func Of(agents ...core.Agent) *Catalog {
	c := &Catalog{agents: map[string]core.Agent{}}
	for _, agent := range agents {
		c.agents[agent.Name] = agent
	}
	return c
}

// LoadFile reads one agent's file, wherever it is. The error joins everything that
// is wrong with it, a *Fault each.
func LoadFile(path string, known Known) (core.Agent, error) {
	return loadFile(os.DirFS(filepath.Dir(path)), filepath.Base(path), path, known)
}

// Get returns the agent of the name; ErrNotFound if there is none. Its slices and
// pointers must not be changed.
func (c *Catalog) Get(name string) (core.Agent, error) {
	agent, ok := c.agents[name]
	if !ok {
		return core.Agent{}, core.Errorf(core.ErrNotFound, "agent %q does not exist; there are %s", name, strings.Join(c.names(), ", "))
	}
	return agent, nil
}

// List returns all agents, sorted by name.
func (c *Catalog) List() []core.Agent {
	list := []core.Agent{}
	for _, name := range c.names() {
		list = append(list, c.agents[name])
	}
	return list
}

func (c *Catalog) names() []string { return slices.Sorted(maps.Keys(c.agents)) }

// loadFolder reads every *.yaml of fsys. Folder is what fsys is called in faults.
func loadFolder(fsys fs.FS, folder string, known Known) (map[string]core.Agent, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("agents: read %s: %w", folder, err)
	}
	agents, files := map[string]core.Agent{}, map[string]string{}
	var faults []error
	for _, entry := range entries {
		name := entry.Name()
		path := filepath.Join(folder, name)
		switch ext := filepath.Ext(name); {
		case entry.IsDir() || strings.HasPrefix(name, "."):
			continue
		case ext == ".yml":
			faults = append(faults, &Fault{File: path, Problem: "only *.yaml is read; rename the file"})
			continue
		case ext != ".yaml":
			continue
		}
		agent, err := loadFile(fsys, name, path, known)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if other, twice := files[agent.Name]; twice {
			faults = append(faults, &Fault{File: path, Problem: fmt.Sprintf("agent %s is in %s too; give one another name", agent.Name, other)})
			continue
		}
		agents[agent.Name], files[agent.Name] = agent, path
	}
	return agents, errors.Join(faults...)
}

// loadFile reads one file; path is what it is called in faults.
func loadFile(fsys fs.FS, name, path string, known Known) (core.Agent, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return core.Agent{}, fmt.Errorf("agents: %w", err)
	}
	if info.Size() > maxFile {
		return core.Agent{}, &Fault{File: path, Problem: fmt.Sprintf("the file has more than %d bytes", maxFile)}
	}
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return core.Agent{}, fmt.Errorf("agents: %w", err)
	}
	return parse(path, data, known)
}

// parse reads an agent from the text of a file.
func parse(path string, data []byte, known Known) (core.Agent, error) {
	doc, err := readDocument(path, data)
	if err != nil {
		return core.Agent{}, err
	}
	var agent core.Agent
	doc.decodeInto(&agent)
	doc.check(agent, known)
	if err := errors.Join(doc.faults...); err != nil {
		return core.Agent{}, err
	}
	if agent.Tools == nil {
		agent.Tools = []string{}
	}
	agent.Version, err = version(agent)
	return agent, err
}

// version returns the first 12 hexadecimal digits of the SHA-256 of the agent as
// JSON: the same for the same agent, whatever its file looks like.
func version(agent core.Agent) (string, error) {
	agent.Version = ""
	canonical, err := json.Marshal(agent)
	if err != nil {
		return "", fmt.Errorf("version of agent %s: %w", agent.Name, err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])[:12], nil
}
