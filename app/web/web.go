// Package web holds the files of the web page as they were built from ui into dist, and those of the API document's page.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/swaggest/swgui/v5/static"
)

//go:embed all:dist docs
var embedded embed.FS

// File is a file of the page. It must not be modified.
type File struct {
	MediaType string
	ETag      string // changes with the content
	Body      []byte
	// Body compressed; nil = the build has not compressed it. Browsers take Brotli, which is a tenth smaller, over HTTPS
	// and from this machine.
	Brotli, Gzip []byte
}

// mediaTypes are those of the page's files. Those of the machine are not used: they differ.
var mediaTypes = map[string]string{ //nolint:gochecknoglobals // constant
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".json": "application/json", ".png": "image/png", ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json", ".woff2": "font/woff2",
}

// Lookup returns the file with that path, such as index.html or assets/index-1a2b.js of dist, or docs/index.html;
// false if there is none.
func Lookup(name string) (File, bool) {
	f, ok := readFiles()[name]
	return f, ok
}

// readFiles reads the embedded files, once per process. It panics on a file of unknown type.
var readFiles = sync.OnceValue(func() map[string]File { //nolint:gochecknoglobals // built from constants, never changes
	files := map[string]File{}
	err := fs.WalkDir(embedded, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) == ".gz" || path.Ext(name) == ".br" || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		media, ok := mediaTypes[path.Ext(name)]
		if !ok {
			return fmt.Errorf("%s has no media type", name)
		}
		body, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		brotli, _ := embedded.ReadFile(name + ".br") // nil if there is none
		packed, _ := embedded.ReadFile(name + ".gz")
		files[strings.TrimPrefix(name, "dist/")] = File{media, tagOf(body), body, brotli, packed}
		return nil
	})
	for _, name := range []string{"swagger-ui-bundle.js", "swagger-ui.css"} { // the library has them compressed
		packed, readErr := static.FS.ReadFile(name + ".gz")
		body, unpackErr := unpack(packed)
		err = errors.Join(err, readErr, unpackErr)
		files["docs/"+name] = File{mediaTypes[path.Ext(name)], tagOf(body), body, nil, packed}
	}
	if err != nil {
		panic("web: " + err.Error())
	}
	return files
})

func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}
