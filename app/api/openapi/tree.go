package openapi

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// object is a JSON object that keeps the order of its members. Values are objects, []any, and what
// JSON has besides them.
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

// in returns the object that is the member, nil if there is none.
func (o object) in(name string) object {
	inner, _ := o.get(name).(object)
	return inner
}

// with returns the object with the member, in place of the one of its name.
func (o object) with(name string, value any) object {
	out := slices.Clone(o)
	if i := slices.IndexFunc(o, func(m member) bool { return m.name == name }); i >= 0 {
		out[i].value = value
		return out
	}
	return append(out, member{name, value})
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	out := []byte("{")
	for i, m := range o {
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, "%q:%s", m.name, value)
	}
	return append(out, '}'), nil
}

// parseYAML reads a YAML document whose root is an object.
func parseYAML(text string) object {
	var node yaml.Node
	must(0, yaml.Unmarshal([]byte(text), &node))
	return valueOf(node.Content[0]).(object)
}

func valueOf(n *yaml.Node) any {
	switch n.Kind {
	case yaml.AliasNode:
		return valueOf(n.Alias)
	case yaml.MappingNode:
		var out object
		for i := 0; i < len(n.Content); i += 2 {
			out = append(out, member{n.Content[i].Value, valueOf(n.Content[i+1])})
		}
		return out
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			list = append(list, valueOf(item))
		}
		return list
	default:
		var value any
		must(0, n.Decode(&value))
		return value
	}
}
