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
var operations string

//go:embed components.yaml
var components string

// anchors is the part of the source that only holds what the rest refers to.
const anchors = "x-responses"

// Document is the description of the API. It is never changed; safe for concurrent
// use.
type Document struct {
	json  []byte
	files map[string]file
	etag  string
}

// file is a part of the page for people.
type file struct {
	MediaType string
	Body      []byte
}

// New reads the embedded document, once in a process. An error is a fault of who wrote
// it.
func New() (*Document, error) { return embedded() }

// embedded is the one document of the process.
//
//nolint:gochecknoglobals // it is made of constants and never changes
var embedded = sync.OnceValues(build)

func build() (*Document, error) {
	tree, err := parse(operations + "\n" + components)
	if err != nil {
		return nil, fmt.Errorf("openapi document: %w", err)
	}
	tree = tree.without(anchors)
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("openapi document: %w", err)
	}
	shown, err := render(tree)
	if err != nil {
		return nil, fmt.Errorf("openapi page: %w", err)
	}
	sum := sha256.New()
	for _, part := range [][]byte{data, shown, styleSource, scriptSource} {
		sum.Write(part)
	}
	return &Document{
		json: append(data, '\n'), etag: `"` + hex.EncodeToString(sum.Sum(nil)[:16]) + `"`,
		files: map[string]file{
			"":         {"text/html; charset=utf-8", shown},
			"docs.css": {"text/css; charset=utf-8", styleSource},
			"docs.js":  {"text/javascript; charset=utf-8", scriptSource},
		},
	}, nil
}

// JSON returns the document; the caller does not change it.
func (d *Document) JSON() []byte { return d.json }

// File returns a part of the page, false if there is none of that name; the page
// itself has the name "".
func (d *Document) File(name string) (mediaType string, body []byte, ok bool) {
	f, ok := d.files[name]
	return f.MediaType, f.Body, ok
}

// ETag returns what is the same as long as the document and the page are.
func (d *Document) ETag() string { return d.etag }
