package api_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"bobbin/app/api"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// Long answers to GET are compressed for readers who take it; short ones, changes and
// streams are not.
func TestCompression(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	server := api.New(opts)
	do(server, request("POST", sessionPath()+"/messages", `{"run":false,"content":"`+strings.Repeat("All work and no play. ", 5000)+`"}`))
	const takes = "Accept-Encoding: gzip, br"
	plain := do(server, request("GET", sessionPath()+"/messages", ""))
	w := do(server, request("GET", sessionPath()+"/messages", "", takes))
	if w.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(strings.Join(w.Header().Values("Vary"), ","), "Accept-Encoding") || w.Body.Len() > plain.Body.Len()/20 {
		t.Errorf("got %d of %d bytes with %v, want them compressed", w.Body.Len(), plain.Body.Len(), w.Header())
	}
	r := must.Get(gzip.NewReader(w.Body))(t)
	text := must.Get(io.ReadAll(r))(t)
	compare.Equal(t, "text, valid", []any{plain.Body.String(), true}, []any{string(text), json.Valid(text)})
	for name, w := range map[string]string{
		"nobody asked": plain.Header().Get("Content-Encoding"),
		"refused":      do(server, request("GET", sessionPath()+"/messages", "", "Accept-Encoding: gzip;q=0, br")).Header().Get("Content-Encoding"),
		"short":        do(server, request("GET", "/healthz", "", takes)).Header().Get("Content-Encoding"),
		"a change":     do(server, request("POST", sessionPath()+"/messages", `{"content":"x"}`, takes)).Header().Get("Content-Encoding"),
		"a stream":     do(server, request("GET", runPath()+"/events", "", takes)).Header().Get("Content-Encoding"),
	} {
		compare.Equal(t, name+": the encoding", "", w)
	}
}
