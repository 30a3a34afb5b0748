package agents

import (
	"fmt"
	"os"
	"path/filepath"

	"bobbin/app/core"
)

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
