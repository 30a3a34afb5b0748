package agents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"bobbin/app/core"
)

// FileFault is one thing that is wrong with an agent's file.
type FileFault struct {
	File    string
	Line    int // 0 = the file as a whole
	Column  int
	Problem string // what is wrong and what to do
}

// Error returns the fault in one line: agents/quick.yaml:7:3: …
func (f *FileFault) Error() string {
	if f.Line == 0 {
		return f.File + ": " + f.Problem
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Problem)
}

// document is the file of an agent or of a tool while it is read.
type document struct {
	path   string
	text   []byte                // the file as JSON, with its keys in their order: models write what a schema describes in its order
	value  any                   // the decoded text
	places map[string]*yaml.Node // of keys and of items, by path: context.policy, tools[1]
	faults []*FileFault

	inlineTools []core.ToolDefinition // definitions in the list of an agent's tools
	off         map[string]string     // the tools that tools.allow does not have, by name, and why the agent is without them
}

// Bounds of a file, with what its aliases stand for.
const (
	maxJSON   = 2 * maxFile // bytes
	maxLevels = 64
	maxPlaces = 100_000 // keys and items
)

// readDocument parses the file, which must hold one mapping. A key without a value is ignored.
func readDocument(path string, data []byte) (*document, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var file yaml.Node
	switch err := decoder.Decode(&file); {
	case errors.Is(err, io.EOF):
		return nil, &FileFault{File: path, Problem: "the file is empty; write at least a name"}
	case err != nil:
		return nil, syntaxFault(path, data, err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, &FileFault{File: path, Problem: "the file holds more than one document; write one agent a file"}
	}
	root := resolveAlias(file.Content[0])
	if root.Kind != yaml.MappingNode {
		return nil, &FileFault{File: path, Line: root.Line, Column: root.Column, Problem: "expected fields and values, such as name: helper"}
	}
	d := &document{path: path, places: map[string]*yaml.Node{}, off: map[string]string{}}
	var out bytes.Buffer
	d.writeNode(&out, root, "", 1)
	if err := d.err(); err != nil {
		return nil, err
	}
	var err error
	if d.value, err = jsonschema.UnmarshalJSON(bytes.NewReader(out.Bytes())); err != nil {
		return nil, &FileFault{File: path, Problem: "it cannot be read: " + err.Error()}
	}
	d.text = out.Bytes()
	return d, nil
}

// writeNode writes the node, which is so many levels deep, as JSON. Aliases may repeat or contain each
// other: the bounds hold for what they stand for. All of a JSON Schema has the path of the schema.
func (d *document) writeNode(out *bytes.Buffer, node *yaml.Node, path string, depth int) {
	switch node = resolveAlias(node); {
	case out.Len() > maxJSON || len(d.places) > maxPlaces:
		if len(d.faults) == 0 {
			d.addFault(node, "%s: the file has more than %d bytes; make it smaller", path, maxJSON)
		}
	case depth > maxLevels:
		d.addFault(node, "%s has more than %d levels; make it flatter", path, maxLevels)
	case node.Kind == yaml.MappingNode:
		d.writeObject(out, node, path, depth)
	case node.Kind == yaml.SequenceNode:
		out.WriteByte('[')
		for i, item := range node.Content {
			if i > 0 {
				out.WriteByte(',')
			}
			at := path
			if !jsonSchema.MatchString(path) {
				at = fmt.Sprintf("%s[%d]", path, i)
				d.places[at] = item
			}
			d.writeNode(out, item, at, depth+1)
		}
		out.WriteByte(']')
	default:
		var value any = node.Value // a date is the text that it looks like
		var err error
		switch node.Tag {
		case "!!null", "!!bool", "!!int", "!!float":
			err = node.Decode(&value)
		}
		text, jsonErr := json.Marshal(value)
		if err != nil || jsonErr != nil { // .nan and .inf
			d.addFault(node, "%s: %q is not a value of JSON", path, core.Clip(node.Value, 60))
		}
		out.Write(text)
	}
}

// jsonSchema matches the paths of JSON Schemas, where null is a value.
var jsonSchema = regexp.MustCompile(`^(response_format\.schema|(tools\[\d+\]\.)?parameters)$`)

func (d *document) writeObject(out *bytes.Buffer, node *yaml.Node, path string, depth int) {
	out.WriteByte('{')
	comma, lines := "", map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := resolveAlias(node.Content[i]), resolveAlias(node.Content[i+1])
		at, inSchema := strings.TrimPrefix(path+"."+key.Value, "."), jsonSchema.MatchString(path)
		switch first := lines[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			d.addFault(key, "%s: a key must be a text", path)
			continue
		case first > 0:
			d.addFault(key, "%s is there already, in line %d", at, first)
			continue
		case inSchema:
			at = path
		case value.Tag != "!!null":
			d.places[at] = key
		}
		if lines[key.Value] = key.Line; value.Tag == "!!null" && !inSchema {
			continue
		}
		name, _ := json.Marshal(key.Value) // texts always are JSON
		out.WriteString(comma + string(name) + ":")
		d.writeNode(out, value, at, depth+1)
		comma = ","
	}
	out.WriteByte('}')
}

// hasField reports whether the field is in the file.
func (d *document) hasField(path string) bool { return d.places[path] != nil }

// addFault notes what is wrong at the node.
func (d *document) addFault(node *yaml.Node, format string, args ...any) {
	d.faults = append(d.faults, &FileFault{File: d.path, Line: node.Line, Column: node.Column, Problem: fmt.Sprintf(format, args...)})
}

// faultAt notes what is wrong with the field of the path, or if it is not in the
// file with the one that it is part of, or with the file as a whole.
func (d *document) faultAt(path, format string, args ...any) {
	for at := path; at != ""; at = at[:max(0, strings.LastIndexAny(at, ".["))] {
		if node, ok := d.places[at]; ok {
			d.addFault(node, format, args...)
			return
		}
	}
	d.faults = append(d.faults, &FileFault{File: d.path, Problem: fmt.Sprintf(format, args...)})
}

// checkForm notes what is wrong with the form of a value. Path is that in the file; empty = the file.
func (d *document) checkForm(schema *fileSchema, value any, path string) {
	for _, fault := range schema.check(value, path) {
		d.faultAt(fault.Field, "%s %s", fault.Field, fault.Detail)
	}
}

// maxFaults bounds the faults that are reported of one file.
const maxFaults = 50

// err returns the faults in the order of their places, those of the whole file last; nil = none.
func (d *document) err() error {
	line := func(f *FileFault) int {
		if f.Line == 0 {
			return math.MaxInt
		}
		return f.Line
	}
	slices.SortStableFunc(d.faults, func(a, b *FileFault) int {
		return cmp.Or(cmp.Compare(line(a), line(b)), cmp.Compare(a.Column, b.Column))
	})
	var errs []error
	for i, f := range d.faults {
		if i == maxFaults {
			errs = append(errs, &FileFault{File: d.path, Problem: fmt.Sprintf("there are %d more faults", len(d.faults)-i)})
			break
		}
		errs = append(errs, f)
	}
	return errors.Join(errs...)
}

// resolveAlias returns what an alias stands for.
func resolveAlias(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// yamlLine finds the line in an error of the YAML parser.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// syntaxFault returns the fault of a file that is no YAML.
func syntaxFault(path string, data []byte, err error) error {
	var types *yaml.TypeError
	found := yamlLine.FindStringSubmatch(err.Error())
	if errors.As(err, &types) || found == nil {
		return &FileFault{File: path, Problem: "it is not YAML: " + err.Error()}
	}
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
		if i := strings.IndexByte(indent, '\t'); i >= 0 && strings.TrimSpace(text) != "" {
			return &FileFault{File: path, Line: line, Column: i + 1, Problem: "a tab cannot indent; use spaces"}
		}
	}
	line, _ = strconv.Atoi(found[1]) // no line is 0
	if line == 0 {
		return &FileFault{File: path, Problem: "it is not YAML: " + found[2]}
	}
	return &FileFault{File: path, Line: line, Column: 1, Problem: fmt.Sprintf("it is not YAML from about here on: %s", found[2])}
}
