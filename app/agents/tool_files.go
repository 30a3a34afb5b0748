package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"bobbin/app/core"
)

// toolFile is a file of the folder of tools that was read: a definition, or what is wrong with it.
type toolFile struct {
	path       string
	definition core.ToolDefinition
	err        error
}

// readToolFolder reads every *.yaml of the folder of tools. Without one, or while no kind of tool
// is allowed, there are none: a folder of that name may be anybody's.
func readToolFolder(known KnownParts) ([]toolFile, error) {
	if known.ToolsDir == "" || len(known.Kinds) == 0 {
		return nil, nil
	}
	texts, err := readTexts(known.ToolsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var files []toolFile
	for _, text := range texts {
		f := toolFile{path: text.path, err: text.err}
		if f.err == nil {
			f.definition, f.err = parseTool(text.path, text.data, known)
		}
		files = append(files, f)
	}
	return files, nil
}

// parseTool reads a definition from the text of a file.
func parseTool(path string, data []byte, known KnownParts) (core.ToolDefinition, error) {
	doc, err := readDocument(path, data)
	if err != nil {
		return core.ToolDefinition{}, err
	}
	for i := 0; i+1 < len(doc.root.Content); i += 2 {
		if key := doc.root.Content[i]; key.Value == "openapi" {
			return core.ToolDefinition{}, &FileFault{File: path, Line: key.Line, Column: key.Column, Problem: "this is an OpenAPI document, and not the description of a tool; move it to another folder and name it under document"}
		}
	}
	definition := doc.readDefinition(doc.root, "", known)
	return definition, doc.err()
}

// readDefinition reads a definition and notes what is wrong with it. Prefix is of its fields in
// faults.
func (d *document) readDefinition(node *yaml.Node, prefix string, known KnownParts) core.ToolDefinition {
	definition := core.ToolDefinition{File: d.path}
	before := len(d.faults)
	d.readStruct(node, reflect.ValueOf(&definition).Elem(), prefix)
	d.checkDefinition(definition, prefix, known)
	if len(d.faults) == before {
		definition.DocumentHash = d.checkDocument(definition, prefix)
	}
	return definition
}

// readTools reads the list of an agent's tools: names, and definitions, whose names it returns.
func (d *document) readTools(agent *core.Agent, known KnownParts) {
	for i, item := range d.inlineTools {
		definition := d.readDefinition(item.node, item.path+".", known)
		if other, twice := known.definitions[definition.Name]; twice && definition.Name != "" {
			d.faultAt(item.path+".name", "tool %s is in %s too; give one another name", definition.Name, other.File)
		}
		agent.Tools[item.index] = definition.Name
		d.inlineTools[i].definition = definition
	}
}

// inlineTool is a definition in the list of an agent's tools.
type inlineTool struct {
	node       *yaml.Node
	path       string // tools[1]
	index      int
	definition core.ToolDefinition
}

// addDefinitions gives the agent the definitions that its tools stand for, by name.
func (d *document) addDefinitions(agent *core.Agent, known KnownParts) {
	all := maps.Clone(known.definitions)
	if all == nil {
		all = map[string]core.ToolDefinition{}
	}
	for _, item := range d.inlineTools {
		all[item.definition.Name] = item.definition
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
func (k KnownParts) withDefinitions(before []toolFile) (KnownParts, []toolFile, error) {
	files, err := readToolFolder(k)
	if err != nil {
		return k, nil, err
	}
	k.definitions, k.broken = map[string]core.ToolDefinition{}, map[string]bool{}
	for i, f := range files {
		if f.err != nil {
			kept := slices.IndexFunc(before, func(b toolFile) bool { return b.path == f.path && b.definition.Name != "" })
			if kept < 0 {
				k.broken[f.definition.Name] = true
				files[i].definition = core.ToolDefinition{}
				continue
			}
			files[i].definition = before[kept].definition
			f.definition = before[kept].definition
		}
		name := f.definition.Name
		if other, twice := k.definitions[name]; twice {
			files[i].err = &FileFault{File: f.path, Problem: fmt.Sprintf("tool %s is in %s too; give one another name", name, other.File)}
			files[i].definition = core.ToolDefinition{}
			continue
		}
		k.definitions[name] = f.definition
	}
	return k, files, nil
}

// toolFaults joins what is wrong with the files.
func toolFaults(files []toolFile) error {
	var faults []error
	for _, f := range files {
		faults = append(faults, f.err)
	}
	return errors.Join(faults...)
}

// switchedOff says how tools of files are allowed, of a kind, or of a name that a file has.
func switchedOff(kinds string) string {
	return "such tools start programs and send what agents know; if the files are yours, set tools.allow, such as BOBBIN_TOOLS_ALLOW=" + kinds
}

// kindLine finds the kind in the text of a file that describes a tool.
var kindLine = regexp.MustCompile(`(?m)^kind:\s*"?([a-z]+)`)

// allowTool says what switches on the tool of a file with the name, while no kind is allowed; empty = there
// is no such file.
func allowTool(name string, known KnownParts) string {
	name, _, _ = strings.Cut(name, core.ToolSeparator)
	if known.ToolsDir == "" || len(known.Kinds) > 0 || !fs.ValidPath(name) || strings.Contains(name, "/") {
		return ""
	}
	data, err := readText(os.DirFS(known.ToolsDir), name+".yaml", name)
	if err != nil {
		return ""
	}
	found := kindLine.FindSubmatch(data)
	if found == nil || !slices.Contains(core.ToolKinds(), core.ToolKind(found[1])) {
		return "" // anybody's file
	}
	return switchedOff(string(found[1]))
}
