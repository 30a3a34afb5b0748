package tools

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// dropFaults removes the keywords and properties in which a fault is.
func dropFaults(schema map[string]any, fault *jsonschema.ValidationError) {
	for _, cause := range fault.Causes {
		dropFaults(schema, cause)
	}
	if len(fault.Causes) > 0 {
		return
	}
	holder, key := schema, ""
	var value any = schema
	for _, step := range fault.InstanceLocation {
		switch v := value.(type) {
		case map[string]any:
			holder, key, value = v, step, v[step]
		case []any: // goes as a whole, unless the fault is in an object in it
			n, _ := strconv.Atoi(step) // it is one
			if value = nil; n < len(v) {
				value = v[n]
			}
		}
	}
	names, isList := holder[key].([]any)
	delete(holder, key)
	if isList && key == keyRequired {
		names = slices.DeleteFunc(names, func(name any) bool { _, ok := name.(string); return !ok })
		slices.SortFunc(names, func(a, b any) int { return strings.Compare(a.(string), b.(string)) }) //nolint:forcetypeassert // they are
		holder[key] = slices.Compact(names)
	}
}

// eachSchema calls do with each schema in a value, outer ones first; named says that the value holds schemas
// by their names.
func eachSchema(value any, named bool, do func(map[string]any)) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			eachSchema(item, false, do)
		}
	case map[string]any:
		if !named {
			do(v)
		}
		for key, item := range v {
			if isValue := slices.Contains([]string{"const", "default", "enum", "examples"}, key); named || !isValue {
				eachSchema(item, !named && slices.Contains([]string{keyProperties, "patternProperties", "$defs", "definitions", "dependentSchemas"}, key), do)
			}
		}
	}
}

// repair changes what providers do not take: what other drafts and dialects write in their own way (types in capitals,
// items by their places, truths as bounds), lists without items, properties that are true, and values of which there
// are none.
func repair(schema map[string]any) {
	kinds, _ := schema["type"].([]any)
	for i, kind := range kinds {
		if name, ok := kind.(string); ok {
			kinds[i] = strings.ToLower(name)
		}
	}
	if name, ok := schema["type"].(string); ok {
		schema["type"] = strings.ToLower(name)
	}
	for _, key := range []string{"items", "prefixItems"} {
		if parts, ok := schema[key].([]any); ok && len(parts) == 1 {
			schema["items"] = parts[0]
		} else if ok {
			schema["items"] = map[string]any{"anyOf": parts}
		}
	}
	delete(schema, "prefixItems")
	for _, key := range []string{"exclusiveMinimum", "exclusiveMaximum", keyRequired} {
		if _, ok := schema[key].(bool); ok {
			delete(schema, key)
		}
	}
	if schema["items"] == nil && (schema["type"] == "array" || slices.Contains(kinds, any("array"))) {
		schema["items"] = map[string]any{}
	}
	if values, ok := schema["enum"].([]any); ok && len(values) == 0 {
		delete(schema, "enum")
	}
	properties, _ := schema[keyProperties].(map[string]any)
	for name, property := range properties {
		if property == true {
			properties[name] = map[string]any{}
		}
	}
}

// targetOf returns the schema to which the reference of a schema in the root leads in the end, or the
// schema itself if it has none; false = to none.
func targetOf(root, schema map[string]any) (map[string]any, bool) {
	for range maxSchemaDepth {
		ref, ok := schema["$ref"].(string)
		if !ok {
			return schema, schema != nil
		}
		local, isLocal := strings.CutPrefix(ref, "#")
		text, err := url.PathUnescape(local)
		pointer, err2 := jsonpointer.New(text)
		target, _, err3 := pointer.Get(root)
		if schema, ok = target.(map[string]any); !ok || !isLocal || errors.Join(err, err2, err3) != nil {
			return nil, false
		}
	}
	return nil, false
}
