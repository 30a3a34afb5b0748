package catalog

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"bobbin/app/core"
)

// Fault is one thing that is wrong with an agent's file.
type Fault struct {
	File    string
	Line    int // 0 = the file as a whole
	Column  int
	Problem string // what is wrong and what to do
}

// Error returns the fault in one line: agents/quick.yaml:7:3: …
func (f *Fault) Error() string {
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
	faults []error
}

// readDocument parses the file, which must hold one mapping.
func readDocument(path string, data []byte) (*document, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var file yaml.Node
	switch err := decoder.Decode(&file); {
	case errors.Is(err, io.EOF):
		return nil, &Fault{File: path, Problem: "the file is empty; write at least a name"}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, &Fault{File: path, Problem: "the file holds more than one document; write one agent a file"}
	}
	root := resolve(file.Content[0])
	if root.Kind != yaml.MappingNode {
		return nil, &Fault{File: path, Line: root.Line, Column: root.Column, Problem: "expected fields and values, such as name: helper"}
	}
	return &document{path: path, root: root, places: map[string]*yaml.Node{}}, nil
}

// decodeInto fills in the agent from the file.
func (d *document) decodeInto(agent *core.Agent) {
	d.structure(d.root, reflect.ValueOf(agent).Elem(), "")
}

// structure reads a mapping into a struct by its yaml tags. Prefix ends with a dot,
// or is empty.
func (d *document) structure(node *yaml.Node, into reflect.Value, prefix string) {
	if node.Kind != yaml.MappingNode {
		d.fault(node, "%s is a section: write its fields below it, indented", strings.TrimSuffix(prefix, "."))
		return
	}
	fields := fieldsOf(into)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], resolve(node.Content[i+1])
		path := prefix + key.Value
		field, known := fields[key.Value]
		switch first, twice := d.places[path]; {
		case !known:
			d.fault(key, "%s is not a known field; %s", path, hint(key.Value, fields))
		case twice:
			d.fault(key, "%s is there already, in line %d", path, first.Line)
		default:
			d.places[path] = key
			d.value(value, field, path)
		}
	}
}

// fieldsOf returns the fields of a struct by their yaml names.
func fieldsOf(v reflect.Value) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	for field, value := range v.Fields() {
		if name := field.Tag.Get("yaml"); name != "" && name != "-" {
			fields[name] = value
		}
	}
	return fields
}

// hint says which field was meant, or which there are.
func hint(name string, fields map[string]reflect.Value) string {
	var names []string
	for known := range fields {
		names = append(names, known)
	}
	return suggestion(name, names)
}

// value reads a node into a field. A field without a value is as if it were not
// there.
func (d *document) value(node *yaml.Node, into reflect.Value, path string) {
	if node.Tag == "!!null" {
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		target := reflect.New(into.Type().Elem())
		before := len(d.faults)
		d.value(node, target.Elem(), path)
		if len(d.faults) == before {
			into.Set(target)
		}
	case reflect.Struct:
		d.structure(node, into, path+".")
	case reflect.Map:
		d.sections(node, into, path)
	case reflect.Slice:
		d.list(node, into, path)
	default:
		d.scalar(node, into, path)
	}
}

// sections reads a mapping from names to sections.
func (d *document) sections(node *yaml.Node, into reflect.Value, path string) {
	if node.Kind != yaml.MappingNode {
		d.fault(node, "%s is a section: write its fields below it, indented", path)
		return
	}
	into.Set(reflect.MakeMap(into.Type()))
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], resolve(node.Content[i+1])
		at := path + "." + key.Value
		if first, twice := d.places[at]; twice {
			d.fault(key, "%s is there already, in line %d", at, first.Line)
			continue
		}
		d.places[at] = key
		entry := reflect.New(into.Type().Elem()).Elem()
		if value.Tag != "!!null" {
			d.structure(value, entry, at+".")
		}
		into.SetMapIndex(reflect.ValueOf(key.Value), entry)
	}
}

// list reads a sequence into a slice.
func (d *document) list(node *yaml.Node, into reflect.Value, path string) {
	if node.Kind != yaml.SequenceNode {
		d.fault(node, "%s is not a list; write %s: [one, two]", path, path)
		return
	}
	for i, item := range node.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.places[at] = item
		item = resolve(item)
		value := reflect.New(into.Type().Elem()).Elem()
		before := len(d.faults)
		d.value(item, value, at)
		if len(d.faults) == before && value.IsZero() {
			d.fault(item, "%s is empty; remove it", at)
		}
		into.Set(reflect.Append(into, value)) // a faulty one too: places go by the index
	}
}

// scalar reads a single value into a text, a number, or a truth.
func (d *document) scalar(node *yaml.Node, into reflect.Value, path string) {
	if node.Kind != yaml.ScalarNode {
		d.fault(node, "%s is one value, and not a list or a section", path)
		return
	}
	var wanted string
	var ok bool
	text, isText := into.Addr().Interface().(encoding.TextUnmarshaler)
	if isText { // its own type says what it takes
		if node.Tag != "!!str" || text.UnmarshalText([]byte(node.Value)) != nil {
			into.SetZero()
			d.fault(node, "%s: %q is not a time with a unit, such as 30s", path, core.Clip(node.Value, 60))
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
		panic("catalog: no field of an agent has the type " + into.Type().String())
	}
	if ok {
		ok = node.Decode(into.Addr().Interface()) == nil
	}
	if ok && into.Kind() == reflect.Float64 {
		ok = !math.IsNaN(into.Float()) && !math.IsInf(into.Float(), 0)
	}
	if !ok {
		into.SetZero()
		d.fault(node, "%s: %q is not %s", path, core.Clip(node.Value, 60), wanted)
	}
}

// fault notes what is wrong at the node.
func (d *document) fault(node *yaml.Node, format string, args ...any) {
	d.faults = append(d.faults, &Fault{File: d.path, Line: node.Line, Column: node.Column, Problem: fmt.Sprintf(format, args...)})
}

// faultAt notes what is wrong with the field of the path, or if it is not in the
// file with the one that it is part of, or with the file as a whole.
func (d *document) faultAt(path, format string, args ...any) {
	for at := path; at != ""; at = at[:max(0, strings.LastIndexAny(at, ".["))] {
		if node, ok := d.places[at]; ok {
			d.fault(node, format, args...)
			return
		}
	}
	d.faults = append(d.faults, &Fault{File: d.path, Problem: fmt.Sprintf(format, args...)})
}

// resolve returns what an alias stands for.
func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}
