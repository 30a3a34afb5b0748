package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"bobbin/app/core"
)

// Bounds of the schema of one operation, with what it refers to.
const (
	maxSchemaNodes = 5000
	maxInlineBytes = 4 << 20 // as the document has them, each time that something refers to them
	maxRefDepth    = 12
)

// inliner puts what schemas refer to in the place of the references.
type inliner struct {
	document *openapi3.T
	nodes    int
	bytes    int
	stack    []string // the references on the way
}

// inline returns a schema as JSON without references.
func (x *inliner) inline(ref *openapi3.SchemaRef) (any, error) {
	text, err := json.Marshal(ref)
	if err != nil {
		return nil, errors.New("its schema is not JSON")
	}
	if x.bytes += len(text); x.bytes > maxInlineBytes {
		return nil, fmt.Errorf("its schema has more than %d MiB", maxInlineBytes>>20)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, errors.New("its schema is not JSON")
	}
	return x.value(value, true)
}

// value returns a value of a schema without references. isSchema is false for a mapping from names to
// schemas.
func (x *inliner) value(value any, isSchema bool) (any, error) {
	if x.nodes++; x.nodes > maxSchemaNodes {
		return nil, fmt.Errorf("its schema has more than %d parts", maxSchemaNodes)
	}
	switch v := value.(type) {
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			part, err := x.value(item, true)
			if err != nil {
				return nil, err
			}
			out = append(out, part)
		}
		return out, nil
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && isSchema {
			target, err := x.reference(ref)
			object, isObject := target.(map[string]any)
			if err != nil || !isObject || len(v) == 1 {
				return target, err
			}
			siblings := maps.Clone(v)
			delete(siblings, "$ref")
			own, err := x.object(siblings, true)
			if err != nil {
				return nil, err
			}
			if own, ok := own.(map[string]any); ok {
				maps.Copy(object, own)
			}
			return object, nil
		}
		return x.object(v, isSchema)
	default:
		return value, nil
	}
}

func (x *inliner) object(v map[string]any, isSchema bool) (any, error) {
	out := map[string]any{}
	unneeded := []string{"example", "examples", "xml", "externalDocs", "discriminator", "nullable", "deprecated", "readOnly", "writeOnly"} // by all providers
	for _, key := range slices.Sorted(maps.Keys(v)) {
		item := v[key]
		if isSchema && (slices.Contains(unneeded, key) || strings.HasPrefix(key, "x-")) {
			continue
		}
		if !isSchema && isReadOnly(item) {
			continue
		}
		part, err := x.value(item, !isSchema || key != "properties" && key != "patternProperties")
		if err != nil {
			return nil, err
		}
		out[key] = part
	}
	if required, ok := v["required"].([]any); ok && isSchema {
		properties, _ := v["properties"].(map[string]any)
		out["required"] = slices.DeleteFunc(slices.Clone(required), func(name any) bool {
			key, _ := name.(string)
			return isReadOnly(properties[key])
		})
	}
	if isSchema && v["nullable"] == true {
		if kind, ok := out["type"].(string); ok {
			out["type"] = []any{kind, "null"}
			if values, ok := out["enum"].([]any); ok && !slices.Contains(values, nil) {
				out["enum"] = append(values, nil)
			}
			return out, nil
		}
		for _, key := range []string{"enum", "allOf", "anyOf", "oneOf"} {
			if out[key] != nil {
				return map[string]any{"anyOf": []any{out, map[string]any{"type": "null"}}}, nil
			}
		}
		return out, nil // of anything
	}
	return out, nil
}

// isReadOnly reports whether a property is of answers only.
func isReadOnly(property any) bool {
	schema, _ := property.(map[string]any)
	return schema["readOnly"] == true
}

// reference returns what a reference stands for. One that contains itself is cut.
func (x *inliner) reference(ref string) (any, error) {
	name, local := strings.CutPrefix(ref, "#/components/schemas/")
	if decoded, err := url.PathUnescape(name); err == nil {
		name = decoded
	}
	name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	if !local || x.document.Components == nil || x.document.Components.Schemas[name] == nil {
		return map[string]any{}, nil
	}
	if slices.Contains(x.stack, name) || len(x.stack) >= maxRefDepth {
		return map[string]any{"description": "as above: " + core.Clip(name, 100)}, nil
	}
	x.stack = append(x.stack, name)
	defer func() { x.stack = x.stack[:len(x.stack)-1] }()
	return x.inline(x.document.Components.Schemas[name])
}
