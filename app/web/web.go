// Package web holds the files of the web page as they were built from ui into dist.
package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
)

//go:embed all:dist
var dist embed.FS

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

// Lookup returns the file with that path in dist, such as index.html or assets/index-1a2b.js,
// and false if there is none.
func Lookup(name string) (File, bool) {
	f, ok := readFiles()[name]
	return f, ok
}

// readFiles reads the embedded files, once per process. It panics on a file of unknown type.
var readFiles = sync.OnceValue(func() map[string]File { //nolint:gochecknoglobals // built from constants, never changes
	files := map[string]File{}
	err := fs.WalkDir(dist, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) == ".gz" || path.Ext(name) == ".br" || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		media, ok := mediaTypes[path.Ext(name)]
		if !ok {
			return fmt.Errorf("%s has no media type", name)
		}
		body, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		brotli, _ := dist.ReadFile(name + ".br") // nil if there is none
		gzip, _ := dist.ReadFile(name + ".gz")
		sum := sha256.Sum256(body)
		files[strings.TrimPrefix(name, "dist/")] = File{media, `"` + hex.EncodeToString(sum[:16]) + `"`, body, brotli, gzip}
		return nil
	})
	if err != nil {
		panic("web: " + err.Error())
	}
	return files
})
