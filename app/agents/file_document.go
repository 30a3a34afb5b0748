package agents

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

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

// document is the file of an agent while it is read.
type document struct {
	path   string
	root   *yaml.Node
	places map[string]*yaml.Node // of fields, by path: context.policy, tools[1]
	broken map[string]bool       // paths of fields whose values could not be read, or are not allowed
	faults []*FileFault

	inlineTools []inlineTool      // definitions in the list of an agent's tools
	off         map[string]string // the tools that tools.allow does not have, by name, and why the agent is without them
}

// readDocument parses the file, which must hold one mapping.
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
	return &document{path: path, root: root, places: map[string]*yaml.Node{}, broken: map[string]bool{}}, nil
}

// decodeInto fills in the agent from the file.
func (d *document) decodeInto(agent *core.Agent) {
	d.readStruct(d.root, reflect.ValueOf(agent).Elem(), "")
}

// readStruct reads a mapping into a struct by its yaml tags. Prefix ends with a dot,
// or is empty.
func (d *document) readStruct(node *yaml.Node, into reflect.Value, prefix string) {
	if node.Kind != yaml.MappingNode {
		d.addFault(node, "%s is a section: write its fields below it, indented", strings.TrimSuffix(prefix, "."))
		return
	}
	fields := fieldsOf(into)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], resolveAlias(node.Content[i+1])
		path := prefix + key.Value
		field, known := fields[key.Value]
		switch first, twice := d.places[path]; {
		case !known:
			d.addFault(key, "%s is not a known field; %s", path, suggestField(key.Value, fields))
		case twice:
			d.addFault(key, "%s is there already, in line %d", path, first.Line)
		default:
			d.places[path] = key
			d.readValue(value, field, path)
		}
	}
}

// fieldsOf returns the fields of a struct by their yaml names.
func fieldsOf(v reflect.Value) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	for field, value := range v.Fields() {
		switch name := field.Tag.Get("yaml"); name {
		case "", "-":
		case ",inline":
			maps.Copy(fields, fieldsOf(value))
		default:
			fields[name] = value
		}
	}
	return fields
}

// suggestField says which field was meant, or which there are.
func suggestField(name string, fields map[string]reflect.Value) string {
	var names []string
	for known := range fields {
		names = append(names, known)
	}
	return suggestWord(name, names)
}

// readValue reads a node into a field. A field without a value is as if it were not
// there.
func (d *document) readValue(node *yaml.Node, into reflect.Value, path string) {
	if node.Tag == "!!null" {
		return
	}
	before := len(d.faults)
	defer func() { d.broken[path] = len(d.faults) > before }()
	if schema, ok := into.Addr().Interface().(*json.RawMessage); ok {
		*schema = d.readSchema(node, path)
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		target := reflect.New(into.Type().Elem())
		d.readValue(node, target.Elem(), path)
		if len(d.faults) == before {
			into.Set(target)
		}
	case reflect.Struct:
		d.readStruct(node, into, path+".")
	case reflect.Map:
		d.readMap(node, into, path)
	case reflect.Slice:
		d.readList(node, into, path)
	default:
		d.readScalar(node, into, path)
	}
}

// readMap reads a mapping from names to sections or to single values.
func (d *document) readMap(node *yaml.Node, into reflect.Value, path string) {
	sections := into.Type().Elem().Kind() == reflect.Struct
	if node.Kind != yaml.MappingNode {
		below := "names and texts"
		if sections {
			below = "fields"
		}
		d.addFault(node, "%s is a section: write its %s below it, indented", path, below)
		return
	}
	into.Set(reflect.MakeMap(into.Type()))
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], resolveAlias(node.Content[i+1])
		at := path + "." + key.Value
		if first, twice := d.places[at]; twice {
			d.addFault(key, "%s is there already, in line %d", at, first.Line)
			continue
		}
		d.places[at] = key
		entry := reflect.New(into.Type().Elem()).Elem()
		switch {
		case !sections:
			d.readScalar(value, entry, at)
		case value.Tag != "!!null":
			d.readStruct(value, entry, at+".")
		}
		into.SetMapIndex(reflect.ValueOf(key.Value), entry)
	}
}

// readList reads a sequence into a slice.
func (d *document) readList(node *yaml.Node, into reflect.Value, path string) {
	if node.Kind != yaml.SequenceNode {
		d.addFault(node, "%s is not a list; write %s: [one, two]", path, path)
		return
	}
	for i, item := range node.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.places[at] = item
		item = resolveAlias(item)
		value := reflect.New(into.Type().Elem()).Elem()
		before := len(d.faults)
		if path == "tools" && item.Kind == yaml.MappingNode {
			d.inlineTools = append(d.inlineTools, inlineTool{node: item, path: at, index: i})
			into.Set(reflect.Append(into, value))
			continue
		}
		d.readValue(item, value, at)
		if len(d.faults) == before && value.IsZero() && !strings.HasSuffix(path, "args") {
			d.addFault(item, "%s is empty; remove it", at)
		}
		into.Set(reflect.Append(into, value)) // a faulty one too: places go by the index
	}
}

// readScalar reads a single value into a text, a number, or a truth.
func (d *document) readScalar(node *yaml.Node, into reflect.Value, path string) {
	if node.Kind != yaml.ScalarNode {
		d.addFault(node, "%s is one value, and not a list or a section", path)
		return
	}
	var wanted string
	var ok bool
	text, isText := into.Addr().Interface().(encoding.TextUnmarshaler)
	if isText { // its own type says what it takes
		if node.Tag != "!!str" || text.UnmarshalText([]byte(node.Value)) != nil {
			into.SetZero()
			d.addFault(node, "%s: %q is not a time with a unit, such as 30s", path, core.Clip(node.Value, 60))
		}
		return
	}
	switch into.Kind() {
	case reflect.String:
		wanted, ok = "text; put it in quotes", node.Tag == "!!str"
	case reflect.Bool:
		wanted, ok = "true or false", node.Tag == "!!bool"
	case reflect.Int:
		wanted, ok = "a whole number", node.Tag == "!!int"
	case reflect.Float64:
		wanted, ok = "a number", node.Tag == "!!int" || node.Tag == "!!float"
	default:
		panic("catalog: no field of a file has the type " + into.Type().String())
	}
	if ok {
		ok = node.Decode(into.Addr().Interface()) == nil
	}
	if ok && into.Kind() == reflect.Float64 {
		ok = !math.IsNaN(into.Float()) && !math.IsInf(into.Float(), 0)
	}
	if !ok {
		into.SetZero()
		d.addFault(node, "%s: %q is not %s", path, core.Clip(node.Value, 60), wanted)
	}
}

// addFault notes what is wrong at the node.
func (d *document) addFault(node *yaml.Node, format string, args ...any) {
	d.faults = append(d.faults, &FileFault{File: d.path, Line: node.Line, Column: node.Column, Problem: fmt.Sprintf(format, args...)})
}

// faultAt notes what is wrong with the field of the path, or if it is not in the
// file with the one that it is part of, or with the file as a whole. Of a field that is
// broken nothing else is wrong.
func (d *document) faultAt(path, format string, args ...any) {
	if d.broken[path] {
		return
	}
	for at := path; at != ""; at = at[:max(0, strings.LastIndexAny(at, ".["))] {
		if node, ok := d.places[at]; ok {
			d.addFault(node, format, args...)
			return
		}
	}
	d.faults = append(d.faults, &FileFault{File: d.path, Problem: fmt.Sprintf(format, args...)})
}

// maxFaults bounds the faults that are reported of one file.
const maxFaults = 50

// err returns the faults in the order of their places, those of the whole file last; nil if
// there are none.
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
