package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
	r := reload{before: before, next: next, report: map[string]core.AgentFile{}}
	r.reportTools()
	for _, f := range files { // those that are kept come first: a new file must not take their names
		if f.Err != nil {
			r.keepAgent(f.Path, f.Err)
		}
	}
	for _, f := range files {
		if f.Err == nil {
			r.addAgent(f)
		}
	}
	gone := maps.Clone(before.files)
	for _, f := range files {
		delete(gone, f.Path)
	}
	for path, name := range gone { // a built-in agent of the name is there again
		r.report[path] = core.AgentFile{File: path, Agent: name, Change: core.AgentRemoved}
	}
	if _, ok := next.agents[needed]; !ok {
		return nil, fmt.Errorf("agents: no file in %s is agent %s any more, which default_agent names", dir, needed)
	}
	c.now.Store(next)
	var report []core.AgentFile
	for _, path := range slices.Sorted(maps.Keys(r.report)) {
		report = append(report, r.report[path])
	}
	return report, nil
}

// reload is a Reload at work.
type reload struct {
	before, next *agentSet
	report       map[string]core.AgentFile // by path
}

// reportTools reports the files of tools. A file that is broken keeps the tool that it had.
func (r *reload) reportTools() {
	gone := map[string]CheckedFile{}
	for _, f := range r.before.tools {
		gone[f.Path] = f
	}
	for _, f := range r.next.tools {
		before, had := gone[f.Path]
		delete(gone, f.Path)
		report := core.AgentFile{File: f.Path, Tool: f.Tool.Name, Change: core.AgentAdded}
		switch {
		case f.Err != nil:
			report.Change, report.Problems = core.AgentBroken, strings.Split(f.Err.Error(), "\n")
		case had && reflect.DeepEqual(before.Tool, f.Tool):
			report.Change = core.AgentUnchanged
		case had:
			report.Change = core.AgentChanged
		}
		r.report[f.Path] = report
	}
	for path, f := range gone {
		r.report[path] = core.AgentFile{File: path, Tool: f.Tool.Name, Change: core.AgentRemoved}
	}
}

// keepAgent leaves the agent of a file as it was, because something is wrong with the file.
func (r *reload) keepAgent(path string, err error) {
	f := core.AgentFile{File: path, Change: core.AgentBroken, Problems: strings.Split(err.Error(), "\n")}
	name, had := r.before.files[path]
	if old := (CheckedFile{Path: path, Agent: r.before.agents[name]}); had && r.next.addAgent(old) == nil {
		f.Agent, f.Version = name, old.Agent.Version
	}
	r.report[path] = f
}

// addAgent puts the agent of a file in.
func (r *reload) addAgent(f CheckedFile) {
	if err := r.next.addAgent(f); err != nil {
		r.keepAgent(f.Path, err)
		return
	}
	change := core.AgentAdded
	if name, ok := r.before.files[f.Path]; ok {
		change = core.AgentChanged
		if name == f.Agent.Name && r.before.agents[name].Version == f.Agent.Version {
			change = core.AgentUnchanged
		}
	}
	r.report[f.Path] = core.AgentFile{File: f.Path, Agent: f.Agent.Name, Version: f.Agent.Version, Change: change}
}
