package api

import (
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// Limits of compression.
const (
	minCompressed = 1 << 10 // bytes of a response; shorter ones are sent uncompressed
	maxCompressed = 64      // responses at a time; each takes some hundred KiB, further ones are sent uncompressed
	jitterBytes   = 32
)

// compressor compresses responses to GET requests that accept gzip. Event streams are not
// compressed: each event has to arrive immediately. Neither are responses to requests that
// change something, which repeat what the caller sends.
//
// The length of a compressed response can reveal a secret to an attacker who makes the
// victim's browser send requests with chosen text (BREACH). Such requests carry no
// credentials here, since there are no cookies, and responses hold no keys or webhook
// secrets. Padding of random length is added nevertheless.
type compressor struct {
	plain      http.Handler
	compressed http.Handler
	slots      chan struct{} // holds an element for each response that is being compressed
}

// mustCompress returns the handler with compression. Its settings are constants, so an
// error is a programming error.
func mustCompress(plain http.Handler) *compressor {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.MinSize(minCompressed), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.RandomJitter(jitterBytes, 0, false),
		gzhttp.ContentTypes([]string{"application/json", "application/problem+json", "application/jsonl", "text/markdown", "text/html", "text/css", "text/javascript"}),
	)
	if err != nil {
		panic("api: " + err.Error())
	}
	return &compressor{plain: plain, compressed: wrap(plain), slots: make(chan struct{}, maxCompressed)}
}

// ServeHTTP answers one request.
func (c *compressor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || strings.HasSuffix(r.URL.Path, "/events") || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		c.plain.ServeHTTP(w, r)
		return
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
		c.compressed.ServeHTTP(w, r)
	default:
		c.plain.ServeHTTP(w, r)
	}
}
