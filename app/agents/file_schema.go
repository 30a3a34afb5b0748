package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"bobbin/app/core"
)

// readSchema returns a mapping as JSON, with its keys in the order of the file: models write
// what a schema describes in its order.
func (d *document) readSchema(node *yaml.Node, path string) json.RawMessage {
	if node.Kind != yaml.MappingNode {
		d.addFault(node, "%s is a section: write the JSON Schema below it, indented", path)
		return nil
	}
	w := jsonWriter{document: d, path: path}
	w.writeNode(node, 1)
	if w.failed {
		return nil
	}
	return json.RawMessage(w.out.Bytes())
}

// jsonWriter writes YAML as JSON until something is wrong.
type jsonWriter struct {
	*document
	path   string
	out    bytes.Buffer
	failed bool
}

// setError notes what is wrong, the first time.
func (w *jsonWriter) setError(node *yaml.Node, format string, args ...any) {
	if !w.failed {
		w.failed = true
		w.addFault(node, "%s: "+format, append([]any{w.path}, args...)...)
	}
}

// writeNode writes the node, which is so many levels deep. Aliases may repeat or contain each
// other: the bounds hold for what they stand for.
func (w *jsonWriter) writeNode(node *yaml.Node, depth int) {
	switch node = resolveAlias(node); {
	case w.failed:
	case depth > maxSchemaDepth:
		w.setError(node, "it has more than %d levels; make it flatter", maxSchemaDepth)
	case w.out.Len() > maxSchemaBytes:
		w.setError(node, "it has more than %d KiB; make it smaller", maxSchemaBytes>>10)
	case node.Kind == yaml.MappingNode:
		w.writeObject(node, depth)
	case node.Kind == yaml.SequenceNode:
		w.out.WriteByte('[')
		for i, item := range node.Content {
			w.writeComma(i)
			w.writeNode(item, depth+1)
		}
		w.out.WriteByte(']')
	default:
		w.writeScalar(node)
	}
}

func (w *jsonWriter) writeObject(node *yaml.Node, depth int) {
	w.out.WriteByte('{')
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := resolveAlias(node.Content[i])
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
			w.setError(key, "a key must be a text")
		case seen[key.Value]:
			w.setError(key, "%q is there already", core.Clip(key.Value, 60))
		}
		seen[key.Value] = true
		w.writeComma(i)
		w.writeValue(key, key.Value)
		w.out.WriteByte(':')
		w.writeNode(node.Content[i+1], depth+1)
	}
	w.out.WriteByte('}')
}

func (w *jsonWriter) writeComma(i int) {
	if i > 0 {
		w.out.WriteByte(',')
	}
}

// writeScalar writes a single value. A date is the text that it looks like.
func (w *jsonWriter) writeScalar(node *yaml.Node) {
	var value any = node.Value
	switch node.Tag {
	case "!!null", "!!bool", "!!int", "!!float":
		if err := node.Decode(&value); err != nil {
			w.setError(node, "%q is not a value of JSON", core.Clip(node.Value, 60))
			return
		}
	}
	w.writeValue(node, value)
}

func (w *jsonWriter) writeValue(node *yaml.Node, value any) {
	text, err := json.Marshal(value)
	if err != nil { // .nan and .inf
		w.setError(node, "%q is not a value of JSON", core.Clip(node.Value, 60))
		return
	}
	w.out.Write(text)
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
	if line, column := indentingTab(data); line > 0 {
		return &FileFault{File: path, Line: line, Column: column, Problem: "a tab cannot indent; use spaces"}
	}
	line, _ := strconv.Atoi(found[1]) // no line is 0
	if line == 0 {
		return &FileFault{File: path, Problem: "it is not YAML: " + found[2]}
	}
	return &FileFault{File: path, Line: line, Column: 1, Problem: fmt.Sprintf("it is not YAML from about here on: %s", found[2])}
}

// indentingTab returns the place of the first tab that stands before the text of a line; 0
// if there is none.
func indentingTab(data []byte) (line, column int) {
	for text := range strings.Lines(string(data)) {
		line++
		indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
		if i := strings.IndexByte(indent, '\t'); i >= 0 && strings.TrimSpace(text) != "" {
			return line, i + 1
		}
	}
	return 0, 0
}
