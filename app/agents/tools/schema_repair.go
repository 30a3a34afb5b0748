package tools

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	holder, last := schema, ""
	var value any = schema
	for _, step := range fault.InstanceLocation {
		switch v := value.(type) {
		case map[string]any:
			holder, last, value = v, step, v[step]
		case []any: // goes as a whole, unless the fault is in an object in it
			n, _ := strconv.Atoi(step) // it is one
			value = v[n]
		}
	}
	delete(holder, last)
}

// itemOfTuple is the place of a schema in the tuples of older drafts.
var itemOfTuple = regexp.MustCompile(`/items/(\d+)`)

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

// repair changes what servers write otherwise than JSON Schema and providers have it, and can be kept.
func repair(schema map[string]any) {
	for key, value := range schema {
		text, isText := value.(string)
		list, isList := value.([]any)
		switch {
		case key == "type" && isText: // Gemini's are in capitals
			schema[key] = strings.ToLower(text)
		case key == "items" && isList: // those of a tuple in older drafts
			schema[key] = map[string]any{"anyOf": list}
		case key == "items": // of two kinds Gemini takes none
			item, _ := value.(map[string]any)
			if kinds, _ := item["type"].([]any); len(kinds) == 2 && kinds[1] == "null" {
				item["type"] = kinds[0]
			}
		case key == "enum" && isList && len(list) == 0:
			delete(schema, key)
		case key == keyRequired && isList:
			names := []any{}
			for _, name := range list {
				if _, ok := name.(string); ok && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
			schema[key] = names
		case key == keyProperties:
			properties, _ := value.(map[string]any)
			for name, property := range properties {
				if property == true { // Gemini takes only objects
					properties[name] = map[string]any{}
				}
			}
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
		var value any = root
		pointer, err := url.PathUnescape(ref)
		steps := strings.Split(pointer, "/")
		for _, step := range steps[1:] {
			switch v := value.(type) {
			case map[string]any:
				value = v[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
			case []any:
				n, err := strconv.ParseUint(step, 10, 16)
				if value = nil; err == nil && int(n) < len(v) {
					value = v[n]
				}
			default:
				value = nil
			}
		}
		if schema, ok = value.(map[string]any); !ok || err != nil || steps[0] != "#" {
			return nil, false
		}
	}
	return nil, false
}
