package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"bobbin/app/core"
)

// FileName is the name of the configuration file.
const FileName = "bobbin.yaml"

// findFile returns the path of the configuration file, "" if there is none. One
// that was asked for must exist. Named is false for one that is taken because it is in
// the working directory.
func findFile(opts Options) (path string, named bool, err error) {
	if opts.File != "" {
		if _, err := os.Stat(opts.File); err != nil {
			return "", false, fmt.Errorf("configuration file: %w", err)
		}
		return opts.File, true, nil
	}
	places := []string{filepath.Join(opts.Dir, FileName)}
	user := opts.UserDir
	if user == "" {
		user, _ = os.UserConfigDir() // empty without HOME, as in a container: then there is no such file
	}
	if user != "" {
		places = append(places, filepath.Join(user, "bobbin", FileName))
	}
	for i, path := range places {
		_, err := os.Stat(path)
		if err == nil {
			return path, i > 0, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", false, fmt.Errorf("configuration file: %w", err)
		}
	}
	return "", true, nil
}

// file is what a configuration file says.
type file struct {
	path   string
	named  bool           // --config or BOBBIN_CONFIG names it, or it is in the user's own directory
	values map[string]any // raw values by key
	lines  map[string]int // by key; also of models[1].provider and the like
	faults faults
}

// readFile reads the file. What is wrong with its keys is in faults.
func readFile(path string) (*file, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	f := &file{path: path, values: map[string]any{}, lines: map[string]int{}}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return f, nil // empty, or comments only
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: it holds more than one document; remove the line ---", path)
	}
	if root := resolveAlias(document.Content[0]); root.Kind != yaml.MappingNode {
		if root.Tag == "!!null" {
			return f, nil
		}
		return nil, fmt.Errorf("%s:%d: expected keys and values, such as addr: 127.0.0.1:8080", path, root.Line)
	}
	f.readSection(resolveAlias(document.Content[0]), "")
	return f, nil
}

// readSection reads the keys of a mapping; prefix ends with a dot, or is empty.
func (f *file) readSection(node *yaml.Node, prefix string) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := prefix+node.Content[i].Value, resolveAlias(node.Content[i+1])
		line := node.Content[i].Line
		if first, twice := f.lines[key]; twice {
			f.addFault(line, key, fmt.Sprintf("is there already, in line %d", first))
			continue
		}
		f.lines[key] = line
		switch {
		case isSetting(key):
			f.readSetting(key, value)
		case isSection(key) && value.Kind == yaml.MappingNode:
			f.readSection(value, key+".")
		case isSection(key) && value.Tag == "!!null":
		case isSection(key):
			f.addFault(line, key, "is a section: write its keys below it, indented")
		default:
			f.addFault(line, key, unknownKey(key, settingNames()))
		}
	}
}

// readSetting takes the value of a key. No value is as if the key were not there.
func (f *file) readSetting(key string, node *yaml.Node) {
	if node.Tag == "!!null" {
		return
	}
	var raw any
	if err := node.Decode(&raw); err != nil {
		f.addFault(node.Line, key, err.Error())
		return
	}
	f.values[key] = raw
	if node.Kind != yaml.SequenceNode {
		return
	}
	for i, item := range node.Content {
		at := fmt.Sprintf("%s[%d]", key, i)
		f.lines[at] = item.Line
		if item = resolveAlias(item); item.Kind != yaml.MappingNode {
			continue
		}
		for j := 0; j+1 < len(item.Content); j += 2 {
			f.lines[at+"."+item.Content[j].Value] = item.Content[j].Line
		}
	}
}

func (f *file) addFault(line int, key, problem string) {
	f.faults = append(f.faults, &Fault{Where: fmt.Sprintf("%s:%d", f.path, line), Key: key, Problem: problem})
}

// keyLocation returns the place of the key: of the innermost part that has a line.
func (f *file) keyLocation(key string) string {
	for key != "" {
		if line, ok := f.lines[key]; ok {
			return fmt.Sprintf("%s:%d", f.path, line)
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
	return f.path
}

// resolveAlias returns what an alias stands for.
func resolveAlias(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func isSetting(key string) bool { return slices.Contains(settingNames(), key) }

// isSection reports whether there are keys below key.
func isSection(key string) bool {
	return slices.ContainsFunc(settingNames(), func(name string) bool { return strings.HasPrefix(name, key+".") })
}

// unknownKey says that there is no such key, and which was meant: one that is
// spelled alike, or that is the same within a section.
func unknownKey(key string, known []string) string {
	meant := core.Nearest(key, known)
	if meant == "" {
		last := key[strings.LastIndexByte(key, '.')+1:]
		i := slices.IndexFunc(known, func(name string) bool { return strings.HasSuffix(name, "."+last) || name == last })
		if i >= 0 {
			meant = known[i]
		}
	}
	if meant == "" {
		return "is not a known key; see docs/CONFIGURATION.md"
	}
	return "is not a known key; did you mean " + meant + "?"
}
