package openapi

import (
	"crypto/sha256"
	_ "embed" // the document
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
)

//go:embed openapi.yaml
var written string

//go:embed components.yaml
var components string

// Document is the description of the API. It is immutable and safe for concurrent use.
type Document struct {
	json   []byte
	groups []Group
	files  map[string]file
	etag   string
}

// file is a file of the documentation page.
type file struct {
	MediaType string
	Body      []byte
}

// New reads the embedded document, once per process. An error is a fault in the document.
func New() (*Document, error) { return embedded() }

// embedded is the one document of the process.
//
//nolint:gochecknoglobals // built from constants, never changes
var embedded = sync.OnceValues(buildDocument)

func buildDocument() (*Document, error) {
	tree, err := parseYAML(written + "\n" + components)
	if err == nil {
		tree, err = withOperations(tree)
	}
	if err != nil {
		return nil, fmt.Errorf("openapi document: %w", err)
	}
	groups := reader{tree}.operationGroups()
	shown, err := renderPage(tree, groups)
	if err != nil {
		return nil, fmt.Errorf("openapi page: %w", err)
	}
	allowNull(tree)
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("openapi document: %w", err)
	}
	sum := sha256.New()
	for _, part := range [][]byte{data, shown, styleSource, scriptSource, iconSource} {
		sum.Write(part)
	}
	return &Document{
		json: append(data, '\n'), groups: groups, etag: `"` + hex.EncodeToString(sum.Sum(nil)[:16]) + `"`,
		files: map[string]file{
			"":         {"text/html; charset=utf-8", shown},
			"docs.css": {"text/css; charset=utf-8", styleSource},
			"docs.js":  {"text/javascript; charset=utf-8", scriptSource},
			"docs.svg": {"image/svg+xml", iconSource},
		},
	}, nil
}

// JSON returns the document; the caller must not modify it.
func (d *Document) JSON() []byte { return d.json }

// Groups returns the operations by their first tag, in the order of the document; the caller must not modify them.
func (d *Document) Groups() []Group { return d.groups }

// File returns a file of the page, false if there is none with that name; the page itself
// has the name "".
func (d *Document) File(name string) (mediaType string, body []byte, ok bool) {
	f, ok := d.files[name]
	return f.MediaType, f.Body, ok
}

// ETag returns an entity tag that changes with the document or the page.
func (d *Document) ETag() string { return d.etag }
