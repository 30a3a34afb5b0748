package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"bobbin/app/core"
)

// MaxDocument bounds an OpenAPI document, in bytes.
const MaxDocument = 16 << 20

// OpenAPI is the source of the tools of an OpenAPI document: one for each operation that the
// definition lists. A document at a URL is loaded until that succeeds. Safe for concurrent use.
type OpenAPI struct {
	*Listed

	definition core.ToolDefinition
	web        Web
}

// NewOpenAPI returns the source of a definition of the kind openapi.
func NewOpenAPI(d core.ToolDefinition, web Web) *OpenAPI {
	return &OpenAPI{NewListed("the document is not loaded yet"), d, web}
}

// How long a document may take, and how long after an error it is loaded again: at first, and at
// most.
const (
	documentTime  = 30 * time.Second
	documentRetry = 5 * time.Second
	maxRetry      = 5 * time.Minute
)

// Run loads the document.
func (o *OpenAPI) Run(ctx context.Context) {
	for wait := documentRetry; ; wait = min(2*wait, maxRetry) {
		var list []*Custom
		data, err := o.read(ctx)
		if err == nil {
			var fault *core.FieldError
			if list, fault = newOperations(o.definition, data, o.web); fault != nil {
				err = fmt.Errorf("%s: %s", fault.Field, fault.Detail)
			}
		}
		listing := NewListing(list)
		if err != nil {
			listing = Listing{Problem: err.Error()}
		}
		if o.Set(listing); err == nil || core.Sleep(ctx, wait) != nil {
			return
		}
	}
}

func (o *OpenAPI) read(ctx context.Context) ([]byte, error) {
	if !isRemote(o.definition.Document) {
		return readDocumentFile(o.definition)
	}
	ctx, cancel := context.WithTimeout(ctx, documentTime)
	defer cancel()
	web := o.web
	web.MaxBytes = MaxDocument
	answer, err := web.send(ctx, o.definition, webRequest{method: http.MethodGet, url: o.definition.Document}) // without the secrets, which are for the server
	switch {
	case err != nil:
		return nil, fmt.Errorf("document: %w", err)
	case answer.status != http.StatusOK:
		return nil, fmt.Errorf("document: the server answered with status %d", answer.status)
	}
	return answer.body, nil
}

// isRemote reports whether a document is at a URL.
func isRemote(document string) bool { return strings.Contains(document, "://") }

// readDocumentFile reads the document of a definition from its file.
func readDocumentFile(d core.ToolDefinition) ([]byte, error) {
	path := d.Document
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(d.File), path)
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("there is no file %s", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the file %s cannot be read", path)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, MaxDocument+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the file %s cannot be read", path)
	case len(data) > MaxDocument:
		return nil, fmt.Errorf("the file %s has more than %d MiB", path, MaxDocument>>20)
	}
	return data, nil
}

// CheckOpenAPI checks a definition against its document, which is a file, and returns the document's hash.
func CheckOpenAPI(d core.ToolDefinition) (hash string, fault *core.FieldError) {
	data, err := readDocumentFile(d)
	if err != nil {
		return "", &core.FieldError{Field: "document", Detail: err.Error()}
	}
	sum := sha256.Sum256(data)
	_, fault = newOperations(d, data, Web{})
	return hex.EncodeToString(sum[:8]), fault
}

// newOperations returns the tools of the operations of the definition, or what is wrong. A panic is a
// fault: the library keeps nulls of a document as nil, anywhere in it.
func newOperations(d core.ToolDefinition, data []byte, web Web) (list []*Custom, fault *core.FieldError) {
	defer func() {
		if p := recover(); p != nil {
			list, fault = nil, &core.FieldError{Field: "document", Detail: "it is not an OpenAPI document that can be read"}
		}
	}()
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = false
	document, err := loader.LoadFromData(data)
	if err == nil && (!strings.HasPrefix(document.OpenAPI, "3.") || document.Paths == nil) {
		err = errors.New("it must be of version 3.0 or 3.1, with paths")
	}
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return nil, &core.FieldError{Field: "document", Detail: "it is not an OpenAPI document that can be read: " + core.CleanText(core.Clip(line, 300))}
	}
	found := map[string][]operation{}
	for path, item := range document.Paths.Map() {
		for method, o := range item.Operations() {
			if o.OperationID != "" {
				found[o.OperationID] = append(found[o.OperationID], operation{method, path, item, o})
			}
		}
	}
	names := NewNamer(d.Name, d.Operations)
	for i, id := range d.Operations {
		key := fmt.Sprintf("operations[%d]", i)
		switch len(found[id]) {
		case 0:
			ids := slices.Sorted(maps.Keys(found))
			const shown = 10
			meant := core.Suggest(id, ids, "", "it has "+strings.Join(ids[:min(len(ids), shown)], ", "))
			return nil, &core.FieldError{Field: key, Detail: fmt.Sprintf("the document has no operation with the operationId %q; %s", core.Clip(id, 100), core.CleanText(core.Clip(meant, 500)))}
		case 1:
		default:
			return nil, &core.FieldError{Field: key, Detail: fmt.Sprintf("the document has %d operations with the operationId %q", len(found[id]), core.Clip(id, 100))}
		}
		o := found[id][0]
		base, err := serverAddress(d, o.servers(document))
		if err != nil {
			return nil, &core.FieldError{Field: "document", Detail: fmt.Sprintf("operation %s: %s", core.Clip(id, 100), err)}
		}
		tool, err := o.tool(d, document, base, names.Name(id), web)
		if err != nil {
			return nil, &core.FieldError{Field: key, Detail: fmt.Sprintf("operation %s: %s", core.Clip(id, 100), err)}
		}
		list = append(list, tool)
	}
	return list, nil
}

// serverAddress returns the address that paths are appended to: the definition's server, or the first
// of the servers. What the definition sends its secrets to must not be chosen by a document from
// elsewhere.
func serverAddress(d core.ToolDefinition, servers openapi3.Servers) (string, error) {
	if d.Server != "" {
		return strings.TrimSuffix(d.Server, "/"), nil
	}
	address := "/" // the default of the specification
	if len(servers) > 0 {
		server := servers[0]
		address = server.URL
		for name, v := range server.Variables {
			if v != nil {
				address = strings.ReplaceAll(address, "{"+name+"}", v.Default)
			}
		}
	} else if !isRemote(d.Document) {
		return "", errors.New("it has no server; set server")
	}
	if strings.ContainsAny(address, "{}") {
		return "", fmt.Errorf("its server %s has a variable without a default; set server", core.CleanText(core.Clip(address, 100)))
	}
	if isRemote(d.Document) {
		from, err := url.Parse(d.Document)
		to, err2 := url.Parse(address)
		if err != nil || err2 != nil {
			return "", errors.New("its server is not an address; set server")
		}
		to = from.ResolveReference(to)
		if (to.Host != from.Host || to.Scheme != from.Scheme) && (len(d.Headers) > 0 || d.Bearer != "") {
			return "", fmt.Errorf("its server is not that of the document, but %s://%s, which would get the headers; set server", core.CleanText(core.Clip(to.Scheme, 10)), core.CleanText(core.Clip(to.Host, 100)))
		}
		address = to.String()
	}
	if CheckAddress(address) != nil || strings.ContainsAny(address, "{}?#") {
		return "", fmt.Errorf("its server %s is not an address; set server", core.CleanText(core.Clip(address, 100)))
	}
	return strings.TrimSuffix(address, "/"), nil
}

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
