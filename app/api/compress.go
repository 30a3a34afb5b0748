package api

import (
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"

	"bobbin/app/api/handlers"
)

// Limits of compression.
const (
	minCompressed = 1 << 10 // bytes of a response; shorter ones are sent uncompressed
	maxCompressed = 64      // responses at a time; each takes some hundred KiB, further ones are sent uncompressed
	jitterBytes   = 32
)

// compressed returns the handler with compression of responses to GET requests that accept gzip. Event
// streams are not compressed: each event has to arrive immediately. Neither are responses to requests
// that change something, which repeat what the caller sends.
//
// The length of a compressed response can reveal a secret to an attacker who makes the
// victim's browser send requests with chosen text (BREACH). Such requests carry no
// credentials here, since there are no cookies, and responses hold no keys or webhook
// secrets. Padding of random length is added nevertheless.
func compressed(plain http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.MinSize(minCompressed), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.RandomJitter(jitterBytes, 0, false),
		gzhttp.ContentTypes([]string{"application/json", "application/problem+json", "application/jsonl", "text/markdown", "text/html", "text/css", "text/javascript"}),
	)
	if err != nil {
		panic("api: " + err.Error()) // the settings are constants
	}
	packed, slots := wrap(plain), make(chan struct{}, maxCompressed)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && !strings.HasSuffix(r.URL.Path, "/events") && handlers.Accepts(r.Header, "Accept-Encoding", "gzip") {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				packed.ServeHTTP(w, r)
				return
			default:
			}
		}
		plain.ServeHTTP(w, r)
	})
}
