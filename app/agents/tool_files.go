package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"bobbin/app/core"
)

// parseTool reads the definition from the text of the file.
func (f *CheckedFile) parseTool(data []byte, known KnownParts) {
	doc, err := readDocument(f.Path, data)
	if err != nil {
		f.Err = err
		return
	}
	if doc.hasField("openapi") {
		doc.faultAt("openapi", "this is an OpenAPI document, and not the description of a tool; move it to another folder and name it under document")
		f.Err = doc.err()
		return
	}
	if doc.checkForm(toolSchema(), doc.value, ""); len(doc.faults) > 0 {
		_ = json.Unmarshal(doc.text, &f.Tool) // as far as it goes: for its name
		f.Tool.File = f.Path
	} else {
		f.Tool = doc.readDefinition(doc.text, "", known)
	}
	f.Off, f.Err = doc.off[f.Tool.Name], doc.err()
}

// readTools reads the list of an agent's tools: names, and definitions, whose names it returns.
func (d *document) readTools(list []json.RawMessage, known KnownParts) []string {
	var names []string
	for i, text := range list {
		var name string
		if json.Unmarshal(text, &name) != nil {
			at := fmt.Sprintf("tools[%d].", i)
			definition := d.readDefinition(text, at, known)
			if other, twice := known.definitions[definition.Name]; twice {
				d.faultAt(at+"name", "tool %s is in %s too; give one another name", definition.Name, other.File)
			}
			d.inlineTools = append(d.inlineTools, definition)
			name = definition.Name
		}
		names = append(names, name)
	}
	return names
}

// addDefinitions gives the agent the definitions that its tools stand for, by name.
func (d *document) addDefinitions(agent *core.Agent, known KnownParts) {
	all := maps.Clone(known.definitions)
	if all == nil {
		all = map[string]core.ToolDefinition{}
	}
	for _, definition := range d.inlineTools {
		all[definition.Name] = definition
	}
	have := core.Agent{Definitions: slices.Collect(maps.Values(all))}
	used := map[string]core.ToolDefinition{}
	for _, name := range agent.Tools {
		if definition, ok := have.Definition(name); ok && definition.Name != "" {
			used[definition.Name] = definition
		}
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		agent.Definitions = append(agent.Definitions, used[name])
	}
}

// withDefinitions returns known with the definitions of files. What is wrong with a file is its
// fault, a second definition of a name included; a broken file keeps the definition of before.
func (k KnownParts) withDefinitions(before []CheckedFile) (KnownParts, []CheckedFile, error) {
	var files []CheckedFile
	var err error
	if k.ToolsDir != "" {
		files, err = readAll(os.DirFS(k.ToolsDir), k.ToolsDir, func(f *CheckedFile, data []byte) { f.parseTool(data, k) })
	}
	switch {
	case len(k.Kinds) == 0: // the folder may be anybody's: what seems to describe a tool is left out, and the rest is nothing
		files = slices.DeleteFunc(files, func(f CheckedFile) bool { return f.Tool.Name == "" || !slices.Contains(core.ToolKinds(), f.Tool.Kind) })
		for i := range files {
			files[i].Err, files[i].Off = nil, switchedOff(files[i].Tool)
		}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return k, nil, err
	}
	k.definitions, k.broken, k.off = map[string]core.ToolDefinition{}, map[string]bool{}, map[string]string{}
	for i, f := range files {
		if f.Err != nil {
			kept := slices.IndexFunc(before, func(b CheckedFile) bool { return b.Path == f.Path && b.Tool.Name != "" })
			if kept < 0 {
				k.broken[f.Tool.Name] = true
				files[i].Tool = core.ToolDefinition{}
				continue
			}
			files[i].Tool = before[kept].Tool
			f.Tool = before[kept].Tool
		}
		name := f.Tool.Name
		if f.Off != "" {
			k.off[name] = f.Off
			continue
		}
		if other, twice := k.definitions[name]; twice {
			files[i].Err = &FileFault{File: f.Path, Problem: fmt.Sprintf("tool %s is in %s too; give one another name", name, other.File)}
			files[i].Tool = core.ToolDefinition{}
			continue
		}
		k.definitions[name] = f.Tool
	}
	return k, files, nil
}

// toolFaults joins what is wrong with the files.
func toolFaults(files []CheckedFile) error {
	var faults []error
	for _, f := range files {
		faults = append(faults, f.Err)
	}
	return errors.Join(faults...)
}

// switchedOff says why a tool of a file is left out, and how it is allowed.
func switchedOff(d core.ToolDefinition) string {
	return fmt.Sprintf("%s describes the tool %s, and tools.allow does not have its kind %s; such tools start programs and send what agents know; if the files are yours, set tools.allow, such as BOBBIN_TOOLS_ALLOW=%[3]s", d.File, d.Name, d.Kind)
}

// leftOut says why the tool of the name, or of its definition, is switched off; empty = it is not.
func (k KnownParts) leftOut(name string) string {
	group, _, _ := strings.Cut(name, core.ToolSeparator)
	return k.off[group]
}
