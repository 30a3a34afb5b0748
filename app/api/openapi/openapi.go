// Package openapi holds the OpenAPI document of the native HTTP API.
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
	Groups []Group // the operations by their first tag, in the order of the document
	ETag   string  // changes with the document
}

// New returns the embedded document, which is made once per process. It panics if there is a fault in it.
//
//nolint:gochecknoglobals // built from constants, never changes
var New = sync.OnceValue(func() *Document {
	tree := withOperations(parseYAML(written + "\n" + components))
	groups := reader{tree}.operationGroups()
	allowNull(tree)
	data := append(must(json.Marshal(tree)), '\n')
	sum := sha256.Sum256(data)
	return &Document{JSON: data, Groups: groups, ETag: `"` + hex.EncodeToString(sum[:16]) + `"`}
})

// must returns the value, and panics if there is a fault in the embedded files.
func must[T any](value T, err error) T {
	if err != nil {
		panic("openapi: " + err.Error())
	}
	return value
}
