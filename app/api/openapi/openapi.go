// Package openapi holds the OpenAPI document of the native HTTP API and the documentation
// page.
//
// The document is OpenAPI 3.1, made at the start of the table of operations (app/api/ops) and of
// what openapi.yaml and components.yaml add: schemas, and what is not JSON. tests/openapi checks it
// against the wire shapes and the answers of a running server.
package openapi

import (
	"crypto/sha256"
	_ "embed" // the document
	"encoding/hex"
	"encoding/json"
	"sync"
)

//go:embed openapi.yaml
var written string

//go:embed components.yaml
var components string

// Document is the description of the API. It is never changed, and safe for concurrent use.
type Document struct {
	JSON   []byte
	Groups []Group         // the operations by their first tag, in the order of the document
	Files  map[string]File // of the documentation page, which itself has the name ""
	ETag   string          // changes with the document or the page
}

// File is a file of the documentation page.
type File struct {
	MediaType string
	Body      []byte
}

// New returns the embedded document, which is made once per process. It panics if there is a fault in it.
//
//nolint:gochecknoglobals // built from constants, never changes
var New = sync.OnceValue(buildDocument)

func buildDocument() *Document {
	tree := withOperations(parseYAML(written + "\n" + components))
	groups := reader{tree}.operationGroups()
	shown := renderPage(tree, groups)
	allowNull(tree)
	data := must(json.Marshal(tree))
	sum := sha256.New()
	for _, part := range [][]byte{data, shown, styleSource, scriptSource, iconSource} {
		sum.Write(part)
	}
	return &Document{
		JSON: append(data, '\n'), Groups: groups, ETag: `"` + hex.EncodeToString(sum.Sum(nil)[:16]) + `"`,
		Files: map[string]File{
			"":         {"text/html; charset=utf-8", shown},
			"docs.css": {"text/css; charset=utf-8", styleSource},
			"docs.js":  {"text/javascript; charset=utf-8", scriptSource},
			"docs.svg": {"image/svg+xml", iconSource},
		},
	}
}

// must returns the value, and panics if there is a fault in the embedded files.
func must[T any](value T, err error) T {
	if err != nil {
		panic("openapi: " + err.Error())
	}
	return value
}
