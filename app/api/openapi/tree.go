package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// object is a JSON object that keeps the order of its members. Values are objects, []any,
// strings, bools, int64, float64 and nil.
type object []member

type member struct {
	name  string
	value any
}

// get returns the member's value, nil if there is none.
func (o object) get(name string) any {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// with returns the object with the member, in place of the one of its name.
func (o object) with(name string, value any) object {
	for i, m := range o {
		if m.name == name {
			out := slices.Clone(o)
			out[i].value = value
			return out
		}
	}
	return append(o[:len(o):len(o)], member{name, value})
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// parseYAML reads a YAML document whose root is an object.
func parseYAML(text string) (object, error) {
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(text), &node); err != nil {
		return nil, err
	}
	value, err := valueOf(node.Content[0])
	if err != nil {
		return nil, err
	}
	o, ok := value.(object)
	if !ok {
		return nil, fmt.Errorf("is not an object")
	}
	return o, nil
}

func valueOf(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.AliasNode:
		return valueOf(n.Alias)
	case yaml.MappingNode:
		return objectOf(n)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			value, err := valueOf(item)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	default:
		// Times stay strings, as in JSON.
		var value any
		switch n.Tag {
		case "!!int":
			var number int64
			if err := n.Decode(&number); err != nil {
				return nil, err
			}
			return number, nil
		case "!!float", "!!bool", "!!null":
			err := n.Decode(&value)
			return value, err
		default:
			return n.Value, nil
		}
	}
}

// objectOf reads a mapping. Merged members (<<) stand in the position of the merge, unless
// the mapping has a member of that name itself.
func objectOf(n *yaml.Node) (object, error) {
	own := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if own[name] {
			return nil, fmt.Errorf("line %d: %s is given twice", n.Content[i].Line, name)
		}
		own[name] = true
	}
	var out object
	for i := 0; i < len(n.Content); i += 2 {
		value, err := valueOf(n.Content[i+1])
		if err != nil {
			return nil, err
		}
		if n.Content[i].Tag != "!!merge" {
			out = append(out, member{n.Content[i].Value, value})
			continue
		}
		merged, ok := value.(object)
		if !ok {
			return nil, fmt.Errorf("line %d: only an object can be merged", n.Content[i].Line)
		}
		for _, m := range merged {
			if !own[m.name] {
				out = append(out, m)
			}
		}
	}
	return out, nil
}
