package tools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-openapi/jsonpointer"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"bobbin/app/core"
)

// Bounds of a tool's definition that comes from others, and of a JSON Schema in general.
const (
	MaxSchemaBytes = 64 << 10
	MaxSchemaDepth = 32
	maxDescription = 4 << 10
)

// noArguments is the schema of a tool without arguments.
const noArguments = `{"type":"object","properties":{}}`

// FitSchema returns a schema of arguments as providers take it: an object with properties, without
// $schema, references that lead nowhere and keywords that JSON Schema does not allow, such as null in
// place of a value, with items for lists, and without combinations at its top, whose properties become
// its own and which its description quotes. The error says why it cannot be used.
func FitSchema(schema any) (json.RawMessage, error) {
	if schema == nil {
		return json.RawMessage(noArguments), nil
	}
	text, err := json.Marshal(schema)
	_, depth := core.JSONSize(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("its schema is not JSON: %w", err)
	case len(text) > MaxSchemaBytes:
		return nil, fmt.Errorf("its schema has more than %d KiB", MaxSchemaBytes>>10)
	case depth > MaxSchemaDepth:
		return nil, fmt.Errorf("its schema has more than %d levels", MaxSchemaDepth)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	fitted, ok := document.(map[string]any)
	if err != nil || !ok {
		return nil, errors.New("its schema is not an object")
	}
	delete(fitted, "$schema")
	delete(fitted, "$id")
	eachSchema(fitted, false, repair)
	var fault *jsonschema.ValidationError
	if errors.As(metaSchema().Validate(fitted), &fault) {
		dropFaults(fitted, fault)
	}
	eachSchema(fitted, false, repair)
	var lost []map[string]any
	eachSchema(fitted, false, func(schema map[string]any) {
		if _, ok := targetOf(fitted, schema); !ok {
			lost = append(lost, schema)
		}
	})
	for _, schema := range lost {
		delete(schema, "$ref")
	}
	if target, _ := targetOf(fitted, fitted); fitted["$ref"] != nil {
		delete(fitted, "$ref")
		target = maps.Clone(target)
		maps.Copy(target, fitted)
		fitted = target
	}
	if kinds, several := fitted["type"].([]any); several && !slices.Contains(kinds, any(typeObject)) || !several && fitted["type"] != nil && fitted["type"] != typeObject {
		return nil, errors.New("its arguments are not an object")
	}
	fitted["type"] = typeObject
	if err := fitCombinations(fitted); err != nil {
		return nil, err
	}
	return json.Marshal(fitted)
}

// Keywords of schemas.
const (
	typeObject    = "object"
	keyProperties = "properties"
	keyRequired   = "required"
)

// metaSchema returns the schema of schemas.
//
//nolint:gochecknoglobals // immutable
var metaSchema = sync.OnceValue(func() *jsonschema.Schema {
	return jsonschema.NewCompiler().MustCompile("https://json-schema.org/draft/2020-12/schema")
})

// fitCombinations moves what providers do not take at the top of a schema of arguments: its properties
// to the others, and the rest, which the server checks, to the description.
func fitCombinations(schema map[string]any) error {
	properties, ok := schema[keyProperties].(map[string]any)
	if !ok {
		properties = map[string]any{}
	}
	moved := map[string]any{}
	for _, key := range []string{"allOf", "anyOf", "oneOf", "not", "enum"} {
		value, has := schema[key]
		if !has {
			continue
		}
		moved[key] = value
		delete(schema, key)
		parts, _ := value.([]any)
		for _, part := range parts {
			object, _ := part.(map[string]any)
			object, _ = targetOf(schema, object)
			more, _ := object[keyProperties].(map[string]any)
			for name, property := range more {
				if _, has := properties[name]; !has {
					properties[name] = property
				}
			}
			if required, ok := object[keyRequired].([]any); ok && key == "allOf" {
				own, _ := schema[keyRequired].([]any)
				own = slices.DeleteFunc(slices.Clone(own), func(name any) bool { return slices.Contains(required, name) })
				schema[keyRequired] = append(own, required...)
			}
		}
	}
	schema[keyProperties] = properties
	if len(moved) == 0 {
		return nil
	}
	text, err := core.EncodeJSON(moved)
	if err != nil || len(text) > maxDescription {
		return fmt.Errorf("its schema has %s at the top, which providers do not take", strings.Join(slices.Sorted(maps.Keys(moved)), ", "))
	}
	description, _ := schema["description"].(string)
	schema["description"] = strings.TrimSpace(description + "\nThe arguments must also match: " + string(text))
	return nil
}

// FitDescription returns a description of others in one bounded text.
func FitDescription(text string) string {
	return core.CleanText(core.Clip(strings.TrimSpace(text), maxDescription))
}

// refusingLoader loads no schemas from elsewhere.
type refusingLoader struct{}

// Load returns an error.
func (refusingLoader) Load(string) (any, error) {
	return nil, errors.New("a schema must not refer to other documents")
}

// CompileSchema checks a JSON Schema of arguments.
func CompileSchema(schema json.RawMessage) (*jsonschema.Schema, error) {
	object, err := argumentObject(schema)
	if err != nil {
		return nil, err
	}
	return compileDocument(object)
}

// compileClosed compiles a JSON Schema of arguments by which only those that it declares may be sent,
// unless it says itself what it takes besides: else a model could set what a request is not meant to
// have.
func compileClosed(schema json.RawMessage) (*jsonschema.Schema, error) {
	object, err := argumentObject(schema)
	if err != nil {
		return nil, err
	}
	_, additional := object["additionalProperties"]
	_, unevaluated := object["unevaluatedProperties"]
	draft, _ := object["$schema"].(string)
	switch {
	case additional, unevaluated:
	case strings.Contains(draft, "/draft-"): // before 2019-09
		object["additionalProperties"] = false
	default:
		object["unevaluatedProperties"] = false // it knows those of allOf and $ref
	}
	return compileDocument(object)
}

// fitParameters returns the schema of a definition as providers take it, or as it is.
func fitParameters(schema json.RawMessage) json.RawMessage {
	if object, err := argumentObject(schema); err == nil {
		if fitted, err := FitSchema(object); err == nil {
			return fitted
		}
	}
	return schema
}

// argumentObject decodes a JSON Schema of arguments.
func argumentObject(schema json.RawMessage) (map[string]any, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, errors.New("it is not JSON")
	}
	object, ok := document.(map[string]any)
	if !ok || object["type"] != "object" {
		return nil, errors.New(`it must have "type: object", as arguments are an object`)
	}
	return object, nil
}

// CheckSchema returns what is wrong with a JSON Schema of anything; nil = nothing.
func CheckSchema(schema json.RawMessage) error {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return errors.New("it is not JSON")
	}
	_, err = compileDocument(document)
	return err
}

// compileDocument compiles a decoded JSON Schema, which must not refer to others.
func compileDocument(document any) (*jsonschema.Schema, error) {
	const address = "urn:bobbin:schema" // else its errors name a folder
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(refusingLoader{})
	compiler.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		if known, err := regexp.Compile(pattern); err == nil {
			return known, nil
		}
		return regexp.MustCompile(""), nil // only the model knows those with lookahead
	})
	if err := compiler.AddResource(address, document); err != nil {
		return nil, errors.New("it is not a JSON Schema")
	}
	compiled, err := compiler.Compile(address)
	if err != nil {
		text := err.Error()
		return nil, fmt.Errorf("it is not a JSON Schema: %s", core.Clip(strings.TrimLeft(text[strings.LastIndexByte(text, '\n')+1:], " -"), 300))
	}
	return compiled, nil
}

// ParseChecked decodes arguments and checks them; nil = any object. Errors are for the model.
func ParseChecked(raw string, schema *jsonschema.Schema) (map[string]any, error) {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(cmp.Or(strings.TrimSpace(raw), "{}")))
	arguments, ok := value.(map[string]any)
	if err != nil || !ok {
		return nil, errors.New("the arguments are not one JSON object")
	}
	if schema == nil {
		return arguments, nil
	}
	if err := schema.Validate(value); err != nil {
		lines := strings.Split(err.Error(), "\n")
		if len(lines) > 1 {
			lines = lines[1:] // without the schema's address
		}
		for i, line := range lines {
			line = strings.TrimPrefix(strings.TrimSpace(line), "- ")
			lines[i] = strings.Replace(line, ": false schema", ": not allowed", 1)
		}
		return nil, fmt.Errorf("the arguments do not match the schema: %s", core.Clip(strings.Join(lines, "; "), 500))
	}
	return arguments, nil
}

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
	for range MaxSchemaDepth {
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
