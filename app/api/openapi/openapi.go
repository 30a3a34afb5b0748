package openapi

import (
	"crypto/sha256"
	_ "embed" // the document
	"encoding/hex"
	"encoding/json"
	"fmt"
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
	json []byte
	etag string
}

// New reads the embedded document. An error is a fault of who wrote it.
func New() (*Document, error) {
	tree, err := parse(operations + "\n" + components)
	if err != nil {
		return nil, fmt.Errorf("openapi document: %w", err)
	}
	data, err := json.Marshal(tree.without(anchors))
	if err != nil {
		return nil, fmt.Errorf("openapi document: %w", err)
	}
	sum := sha256.Sum256(data)
	return &Document{json: append(data, '\n'), etag: `"` + hex.EncodeToString(sum[:16]) + `"`}, nil
}

// JSON returns the document; the caller does not change it.
func (d *Document) JSON() []byte { return d.json }

// ETag returns what is the same as long as the document is.
func (d *Document) ETag() string { return d.etag }
