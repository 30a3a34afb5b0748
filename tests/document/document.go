package document

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"bobbin/app/api/openapi"
)

// Document is the API's document, ready to be checked against. Safe for concurrent
// use after Load.
type Document struct {
	Raw        map[string]any // the document as it is served
	Operations []*Operation   // in the order of path and method
}

// Operation is one method of one path.
type Operation struct {
	ID      string
	Method  string
	Path    string // with its parameters: /api/v1/sessions/{id}
	Params  []Param
	Body    map[string]Schema // by media type; nil = it takes none
	Needed  bool              // the body
	Answers map[int]Answer

	segments []string
}

// Param is a parameter of an operation.
type Param struct {
	Name     string
	In       string // path, query or header
	Required bool
	Schema   Schema
}

// Answer is what may come back with a status.
type Answer struct {
	Body    map[string]Schema // by media type; empty = none
	Events  map[string]Schema // data of the events of a stream, by name
	Headers map[string]Schema
}

// Schema is a place in the document that says what a value looks like.
type Schema struct {
	Raw      map[string]any // with every $ref resolved that it begins with
	Example  any            // of a body
	compiled *jsonschema.Schema
}

// Check returns what is wrong with a value, decoded by Decode.
func (s Schema) Check(value any) error { return s.compiled.Validate(value) }

// Decode reads JSON as Check wants it.
func Decode(data []byte) (any, error) { return jsonschema.UnmarshalJSON(bytes.NewReader(data)) }

// Names under which the document is compiled: as it is, for what is sent, and
// strictly, for what is answered.
const (
	sent     = "https://bobbin.test/sent.json"
	answered = "https://bobbin.test/answered.json"
)

// loader makes operations of the raw document.
type loader struct {
	raw      map[string]any
	compiler *jsonschema.Compiler
}

// Load reads the document that the server serves, once in a process: nobody changes it.
func Load() (*Document, error) { return served() }

//nolint:gochecknoglobals // compiling it takes longer than most tests
var served = sync.OnceValues(func() (*Document, error) { return Parse(openapi.New().JSON) })

// Parse reads a document.
func Parse(data []byte) (*Document, error) {
	var raw, strict map[string]any
	for _, into := range []*map[string]any{&raw, &strict} {
		value, err := Decode(data)
		if err != nil {
			return nil, err
		}
		*into = value.(map[string]any)
	}
	c := closer{strict}
	schemas := lookup(strict, "/components/schemas")
	for _, schema := range schemas {
		c.walk(schema, false)
	}
	c.media(strict["paths"])
	c.media(lookup(strict, "/components/responses"))
	l := loader{raw: raw, compiler: jsonschema.NewCompiler()}
	l.compiler.AssertFormat()
	l.compiler.DefaultDraft(jsonschema.Draft2020)
	for name, doc := range map[string]any{sent: raw, answered: strict} {
		if err := l.compiler.AddResource(name, doc); err != nil {
			return nil, err
		}
	}
	d := &Document{Raw: raw}
	paths, _ := raw["paths"].(map[string]any)
	for path, item := range paths {
		ops, err := l.path(path, item.(map[string]any))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		d.Operations = append(d.Operations, ops...)
	}
	slices.SortFunc(d.Operations, func(a, b *Operation) int {
		return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method)
	})
	return d, nil
}

func (l *loader) path(path string, item map[string]any) ([]*Operation, error) {
	var ops []*Operation
	at := "/paths/" + escape(path)
	for method, value := range item {
		raw := value.(map[string]any)
		op := &Operation{Method: strings.ToUpper(method), Path: path, segments: strings.Split(path, "/"), Answers: map[int]Answer{}}
		op.ID, _ = raw["operationId"].(string)
		if err := l.params(op, at+"/"+method+"/parameters", raw["parameters"]); err != nil {
			return nil, err
		}
		if err := l.body(op, at+"/"+method, raw); err != nil {
			return nil, err
		}
		if err := l.answers(op, at+"/"+method+"/responses", raw["responses"].(map[string]any)); err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		ops = append(ops, op)
	}
	return ops, nil
}

func (l *loader) params(op *Operation, at string, given any) error {
	list, _ := given.([]any)
	for i := range list {
		raw, where := l.resolve(list[i], fmt.Sprintf("%s/%d", at, i))
		p := Param{Name: raw["name"].(string), In: raw["in"].(string)}
		p.Required, _ = raw["required"].(bool)
		schema, err := l.schema(sent, raw["schema"], where+"/schema")
		if err != nil {
			return err
		}
		p.Schema = schema
		op.Params = append(op.Params, p)
	}
	return nil
}

func (l *loader) body(op *Operation, at string, raw map[string]any) error {
	given, ok := raw["requestBody"]
	if !ok {
		return nil
	}
	body, where := l.resolve(given, at+"/requestBody")
	op.Needed, _ = body["required"].(bool)
	var err error
	op.Body, err = l.content(sent, body["content"], where+"/content")
	return err
}

func (l *loader) answers(op *Operation, at string, raw map[string]any) error {
	for status, given := range raw {
		var number int
		if _, err := fmt.Sscanf(status, "%d", &number); err != nil {
			return fmt.Errorf("status %q: %w", status, err)
		}
		answer, where := l.resolve(given, at+"/"+status)
		body, err := l.content(answered, answer["content"], where+"/content")
		if err != nil {
			return err
		}
		out := Answer{Body: body, Headers: map[string]Schema{}}
		if _, ok := body["text/event-stream"]; ok {
			if out.Events, err = l.events(answer); err != nil {
				return err
			}
		}
		headers, _ := answer["headers"].(map[string]any)
		for name, h := range headers {
			header, whereHeader := l.resolve(h, where+"/headers/"+escape(name))
			if out.Headers[name], err = l.schema(answered, header["schema"], whereHeader+"/schema"); err != nil {
				return err
			}
		}
		op.Answers[number] = out
	}
	return nil
}

// events returns the data of every event of a stream, by its name.
func (l *loader) events(answer map[string]any) (map[string]Schema, error) {
	media := answer["content"].(map[string]any)["text/event-stream"].(map[string]any)
	events, where := l.resolve(media["x-events"], "")
	out := map[string]Schema{}
	properties, _ := events["properties"].(map[string]any)
	for name, raw := range properties {
		schema, err := l.schema(answered, raw, where+"/properties/"+escape(name))
		if err != nil {
			return nil, err
		}
		out[name] = schema
	}
	return out, nil
}

func (l *loader) content(doc string, given any, at string) (map[string]Schema, error) {
	content, _ := given.(map[string]any)
	out := map[string]Schema{}
	for media, raw := range content {
		schema, err := l.schema(doc, raw.(map[string]any)["schema"], at+"/"+escape(media)+"/schema")
		if err != nil {
			return nil, err
		}
		schema.Example = raw.(map[string]any)["example"]
		out[media] = schema
	}
	return out, nil
}

func (l *loader) schema(doc string, raw any, at string) (Schema, error) {
	compiled, err := l.compiler.Compile(doc + "#" + at)
	if err != nil {
		return Schema{}, fmt.Errorf("schema at %s: %w", at, err)
	}
	return Schema{Raw: l.Resolved(raw), compiled: compiled}, nil
}

// resolve follows the $ref that a value may be, and says where it ended.
func (l *loader) resolve(value any, at string) (map[string]any, string) {
	o, _ := value.(map[string]any)
	for {
		ref, ok := o["$ref"].(string)
		if !ok {
			return o, at
		}
		at = strings.TrimPrefix(ref, "#")
		o = l.lookup(at)
	}
}

// Resolved returns the schema with what it refers to, own members first.
func (l *loader) Resolved(raw any) map[string]any {
	o, _ := raw.(map[string]any)
	ref, ok := o["$ref"].(string)
	if !ok {
		return o
	}
	out := map[string]any{}
	for name, value := range l.Resolved(l.lookup(strings.TrimPrefix(ref, "#"))) {
		out[name] = value
	}
	for name, value := range o {
		if name != "$ref" {
			out[name] = value
		}
	}
	return out
}

func (l *loader) lookup(at string) map[string]any { return lookup(l.raw, at) }

func lookup(raw map[string]any, at string) map[string]any {
	o := raw
	for name := range strings.SplitSeq(strings.TrimPrefix(at, "/"), "/") {
		o, _ = o[strings.NewReplacer("~1", "/", "~0", "~", "%7B", "{", "%7D", "}").Replace(name)].(map[string]any)
	}
	return o
}

// Resolve returns what a $ref of the document stands for, or the schema itself.
func (d *Document) Resolve(raw map[string]any) map[string]any {
	l := loader{raw: d.Raw}
	return l.Resolved(raw)
}

// escape writes a name as a part of a JSON pointer in a URL.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", "*", "*").Replace(name)
}

type closer struct{ raw map[string]any }

// media closes the schemas of media types, wherever they are.
func (c closer) media(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			c.media(item)
		}
	case map[string]any:
		for name, item := range v {
			if name == "schema" {
				c.walk(item, true)
				continue
			}
			c.media(item)
		}
	}
}

// walk closes what is below a schema, and the schema itself if it stands alone: the
// pieces of an allOf are closed by who joins them.
func (c closer) walk(value any, alone bool) {
	schema, ok := value.(map[string]any)
	if !ok {
		return
	}
	_, open := schema["additionalProperties"]
	if alone && !open && c.named(schema) {
		schema["unevaluatedProperties"] = false
	}
	for _, list := range []string{"anyOf", "oneOf", "allOf"} {
		pieces, _ := schema[list].([]any)
		for _, piece := range pieces {
			c.walk(piece, list != "allOf")
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, property := range properties {
		c.walk(property, true)
	}
	c.walk(schema["items"], true)
	c.walk(schema["additionalProperties"], true)
}

// named reports whether the schema names members.
func (c closer) named(schema map[string]any) bool {
	if ref, ok := schema["$ref"].(string); ok {
		return c.named(lookup(c.raw, strings.TrimPrefix(ref, "#")))
	}
	return schema["properties"] != nil || schema["allOf"] != nil
}
