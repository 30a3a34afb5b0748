package agents

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"bobbin/app/core"
)

// Reload reads the folder again and replaces the agents, all at the same moment. A file that
// is broken keeps the agent that came from it before. It returns what became of each file, in
// the order of their paths. An error changes nothing: there is no folder any more, or no agent
// of the needed name.
func (c *Catalog) Reload(dir string, known KnownParts, needed string) ([]core.AgentFile, error) {
	c.reload.Lock()
	defer c.reload.Unlock()
	before := c.now.Load()
	next, files, err := readAgents(dir, known, before.tools)
	if err != nil && (next == nil || len(next.tools) == 0 || !errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	}
	for _, broken := range []bool{true, false} { // those that are kept come first: a new file must not take their names
		for i, f := range files {
			if (f.Err != nil) != broken {
				continue
			}
			if f.Err = next.addAgent(f); f.Err != nil {
				f.Agent = before.agents[before.files[f.Path]]
				if f.Agent.Name == "" || next.addAgent(CheckedFile{Path: f.Path, Agent: f.Agent}) != nil {
					f.Agent = core.Agent{}
				}
				files[i] = f
			}
		}
	}
	if _, ok := next.agents[needed]; !ok {
		return nil, fmt.Errorf("agents: no file in %s is agent %s any more, which default_agent names", dir, needed)
	}
	c.now.Store(next)
	return before.compareFiles(slices.Concat(next.tools, files)), nil
}

// compareFiles returns what became of each file of the set, and of the new ones.
func (s *agentSet) compareFiles(now []CheckedFile) []core.AgentFile {
	gone := map[string]CheckedFile{}
	for _, f := range s.tools {
		gone[f.Path] = f
	}
	for path, name := range s.files {
		gone[path] = CheckedFile{Agent: s.agents[name]}
	}
	var report []core.AgentFile
	for _, f := range now {
		before, had := gone[f.Path]
		delete(gone, f.Path)
		r := core.AgentFile{File: f.Path, Agent: f.Agent.Name, Version: f.Agent.Version, Tool: f.Tool.Name, Change: core.AgentAdded}
		switch {
		case f.Err != nil:
			r.Change, r.Problems = core.AgentBroken, strings.Split(f.Err.Error(), "\n")
		case had && f.Agent.Name == before.Agent.Name && f.Agent.Version == before.Agent.Version && reflect.DeepEqual(f.Tool, before.Tool):
			r.Change = core.AgentUnchanged
		case had:
			r.Change = core.AgentChanged
		}
		report = append(report, r)
	}
	for path, f := range gone { // a built-in agent of the name is there again
		report = append(report, core.AgentFile{File: path, Agent: f.Agent.Name, Tool: f.Tool.Name, Change: core.AgentRemoved})
	}
	slices.SortFunc(report, func(a, b core.AgentFile) int { return cmp.Compare(a.File, b.File) })
	return report
}

// CheckedFile is a file that was read: its agent or its tool, or what is wrong with it.
type CheckedFile struct {
	Path  string
	Agent core.Agent
	Tool  core.ToolDefinition // of a file of the folder of tools
	Off   string              // why the tool is not used; empty = it is
	Err   error               // joins a *FileFault each; nil = nothing is wrong
}

// CheckFiles reads files, and the *.yaml of folders, as LoadCatalog would, the names of their agents
// and the files of tools included. The error is that of a path that cannot be read.
func CheckFiles(paths []string, known KnownParts) ([]CheckedFile, error) {
	known, tools, err := known.withDefinitions(nil)
	if err != nil {
		return nil, err
	}
	var files []CheckedFile
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("agents: %w", err)
		}
		if info.IsDir() {
			inside, err := readFolder(path, known)
			if err != nil {
				return nil, err
			}
			files = append(files, inside...)
			continue
		}
		f := CheckedFile{Path: filepath.Clean(path)}
		f.Agent, f.Err = LoadAgentFile(path, known)
		files = append(files, f)
	}
	set := &agentSet{agents: map[string]core.Agent{}, files: map[string]string{}}
	out := tools
	for _, f := range files {
		if _, again := set.files[f.Path]; !again { // named twice
			f.Err = set.addAgent(f)
			out = append(out, f)
		}
	}
	return out, nil
}
