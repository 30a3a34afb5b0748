package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"bobbin/app/api"
	"bobbin/app/core"
	"bobbin/app/core/quota"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
)

const asForm = "Content-Type: " + apitest.FormType

// part is a part of a form.
func part(name, file, content string) string {
	if file != "" {
		file = `; filename="` + file + `"`
	}
	return "--x\r\nContent-Disposition: form-data; name=\"" + name + "\"" + file + "\r\n\r\n" + content + "\r\n"
}

// The message of a form is no longer than one that comes as JSON, and counted like it,
// however long the form may be.
func TestFormMessageIsBounded(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	opts.Limits.BodyBytes, opts.Limits.FileBytes = 64<<10, 1<<20
	server := api.New(opts)
	send := func(message string) *httptest.ResponseRecorder {
		form := part("message", "", message) + part("file", "a.txt", "text") + "--x--\r\n"
		return do(server, request("POST", sessionPath()+"/messages", form, asForm, "Prefer: respond-async"))
	}
	compare.Equal(t, "status", 202, send(`{"content":"`+strings.Repeat("a", 60<<10)+`"}`).Code)
	before := do(server, request("GET", sessionPath(), "")).Body.String()
	p := wantProblem(t, send(`{"parts":[`+strings.Repeat(`{},`, 1<<20)+`{}]}`), 413, "too_large")
	compare.Equal(t, "p.Detail", "the field message is larger than 65536 bytes", p.Detail)
	p = wantProblem(t, send(`{"parts":[`+strings.Repeat(`{},`, 10_000)+`{}]}`), 422, "invalid")
	compare.Equal(t, "p.Detail", "the body has more than 10000 values", p.Detail)
	compare.Equal(t, "the session after messages that were refused", before, do(server, request("GET", sessionPath(), "")).Body.String())
}

// slowRequest is a request whose body comes as the test writes it.
type slowRequest struct {
	t      *testing.T
	body   *io.PipeWriter
	answer chan *httptest.ResponseRecorder
}

// beginRequest sends a request without its body.
func beginRequest(t *testing.T, server http.Handler, path string, headers ...string) *slowRequest {
	t.Helper()
	r := request("POST", path, "x", headers...)
	body, writer := io.Pipe()
	r.Body, r.ContentLength = body, -1
	s := &slowRequest{t: t, body: writer, answer: make(chan *httptest.ResponseRecorder, 1)}
	go func() {
		w := do(server, r)
		_ = body.CloseWithError(io.ErrClosedPipe)
		s.answer <- w
	}()
	return s
}

// write sends a piece. When it returns the server has counted the pieces before it.
func (s *slowRequest) write(text string) {
	s.t.Helper()
	compare.Error(s.t, "write the body", nil, compare.ErrorOf(io.WriteString(s.body, text)))
}

// end ends the body and returns the answer.
func (s *slowRequest) end() *httptest.ResponseRecorder {
	_ = s.body.Close()
	return <-s.answer
}

// Bodies that do not end take the memory of their end user, and not that of others.
func TestBodiesInHand(t *testing.T) {
	t.Parallel()
	opts := userOptions(apitest.New(t))
	memory := quota.New(quota.Limits{Total: 200_000, Owner: 180_000, User: 64_000, What: "memory", Wait: time.Millisecond})
	opts.Space.Memory = memory
	server := api.New(opts)
	const path = "/api/v1/sessions"
	title := `{"title":"` + strings.Repeat("a", 100) + `"}`
	first := beginRequest(t, server, path, asEve)
	first.write(strings.Repeat(" ", 63_900))
	first.write(" ")

	w := do(server, request("POST", path, title, asEve))
	wantProblem(t, w, 429, quota.CodeExceeded)
	if w.Header().Get("Retry-After") == "" {
		t.Error("got no Retry-After")
	}
	compare.Equal(t, "status for another user", 201, do(server, request("POST", path, title, asKim)).Code)
	second := beginRequest(t, server, path, asKim)
	second.write(strings.Repeat(" ", 63_900))
	second.write(" ")
	compare.Equal(t, "status for the owner's key", 201, do(server, request("POST", path, title)).Code)

	first.write("{}")
	compare.Equal(t, "status for a slow body", 201, first.end().Code)
	compare.Equal(t, "status after it ended", 201, do(server, request("POST", path, title, asEve)).Code)
	second.write(strings.Repeat(" ", 200)) // beyond its share
	wantProblem(t, second.end(), 429, quota.CodeExceeded)
	compare.Equal(t, "bytes held in the end", 0, memory.Used())
}

// What a request holds is given back when its message is stored, and not at the end of a stream.
func TestBodiesOfStreams(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	memory := quota.New(quota.Limits{Total: 5000, Owner: 4000, User: 2000})
	opts.Space.Memory = memory
	server := api.New(opts)
	for form := range 2 {
		question, open := apitest.Gate(t)
		r := request("POST", sessionPath()+"/messages", `{"content":"`+question+`"}`, asStream)
		if form > 0 {
			r = request("POST", sessionPath()+"/messages", apitest.Form("message", `{"content":"`+question+`"}`), asForm, asStream)
		}
		feed, ended := watch(t, server, sessionPath()+"/events"), make(chan *httptest.ResponseRecorder)
		go func() { ended <- do(server, r) }()
		<-feed.flushed // the run has begun
		compare.Equal(t, "bytes held while it is answered", 0, memory.Used())
		open()
		compare.Equal(t, "of the stream", 200, (<-ended).Code)
	}
}

// Uploads and histories that do not end hold no memory and no place that others wait for;
// what is on the disk is of their caller's share, and gone at the end.
func TestSlowUploads(t *testing.T) {
	t.Parallel()
	opts := userOptions(apitest.New(t))
	memory := quota.New(quota.Limits{Total: 3000, Owner: 3000, User: 3000, What: "memory"})
	disk := quota.New(quota.Limits{Total: 50_000, Owner: 40_000, User: 20_000, What: "disk space"})
	opts.Space.Memory, opts.Space.Disk, opts.Space.Folder = memory, disk, t.TempDir()
	server := api.New(opts)
	imports, history := sessionPath()+"/messages/import", `{"role":"user","content":"x"}`+"\n"
	var held []*slowRequest
	for range 10 {
		s := beginRequest(t, server, "/api/v1/blobs", asForm, asEve)
		s.write(part("file", "a.txt", "")[:60])
		s.write("d")
		held = append(held, s)
	}
	for range 2 {
		s := beginRequest(t, server, imports, "Content-Type: application/jsonl", asKim)
		s.write(history)
		s.write(history)
		held = append(held, s)
	}
	compare.Equal(t, "bytes of memory held by slow bodies", 0, memory.Used())
	if got := disk.Used(); got < 600 {
		t.Errorf("got %d bytes on the disk, want those of 12 bodies", got)
	}
	compare.Equal(t, "status of an import beside slow ones", 200, do(server, request("POST", imports, history, "Content-Type: application/jsonl", asKim)).Code)
	for _, who := range []string{asEve, asKim} {
		compare.Equal(t, "status of an upload beside slow ones", 201, do(server, request("POST", "/api/v1/blobs", part("file", "a.txt", "text")+"--x--\r\n", asForm, who)).Code)
	}
	// More than the share of a user.
	w := do(server, request("POST", imports, strings.Repeat(history, 1000), "Content-Type: application/jsonl", asKim))
	wantProblem(t, w, 429, quota.CodeExceeded)
	for _, s := range held {
		_ = s.body.CloseWithError(io.ErrUnexpectedEOF)
		<-s.answer
	}
	compare.Equal(t, "bytes on the disk in the end", 0, disk.Used())
	files, err := os.ReadDir(opts.Space.Folder)
	if err != nil || len(files) > 0 {
		t.Errorf("got files %v, %v in the end, want none", files, err)
	}
}

// A disk that is full is nobody's mistake.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	opts.Space.Folder = t.TempDir() + "/gone"
	server := api.New(opts)
	w := do(server, request("POST", sessionPath()+"/messages/import", "{}", "Content-Type: application/jsonl"))
	if p := wantProblem(t, w, 503, "unavailable"); strings.Contains(fmt.Sprint(p), opts.Space.Folder) || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %+v, want when to come again and no path", p)
	}
}

// Decoded, many small values take far more memory than their text: that is reserved before they are
// decoded, for every kind of body, until what was decoded is stored.
func TestBodiesOfManyValues(t *testing.T) {
	t.Parallel()
	const values = 3000
	for name, r := range map[string]struct{ method, path, body, hook string }{
		"chat completion": {"POST", "/v1/chat/completions", `{"model":"assistant","messages":[` + strings.Repeat(`{"role":"user","content":"x"},`, values/3) + `{"role":"user","content":"y"}]}`, "Sessions.Create"},
		"response":        {"POST", "/v1/responses", `{"model":"assistant","input":[` + strings.Repeat(`{"role":"user","content":"x"},`, values/3) + `{"role":"user","content":"y"}]}`, "Sessions.Create"},
		"items":           {"POST", "/v1/conversations", `{"items":[` + strings.Repeat(`{"role":"user","content":"x"},`, values/3) + `{"role":"user","content":"y"}]}`, "Sessions.Create"},
		"message":         {"POST", sessionPath() + "/messages", `{"content":"x","metadata":{"a":[0` + strings.Repeat(",0", values) + `]}}`, "Runs.Accept"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend := apitest.New(t)
			opts, _ := options(backend)
			memory := quota.New(quota.Limits{Total: 4 << 20, Owner: 4 << 20, User: 2 << 20, What: "memory"})
			opts.Space.Memory, opts.Space.Folder = memory, t.TempDir()
			held := int64(-1)
			backend.Hooks[r.hook] = func(context.Context) error { held = memory.Used(); return nil }
			w := do(api.New(opts), request(r.method, r.path, r.body))
			if want := int64(values * core.JSONValueBytes); held < want || memory.Used() != 0 {
				t.Errorf("got %d %s, %d bytes held while it is stored and %d in the end, want %d and 0", w.Code, w.Body, held, memory.Used(), want)
			}
		})
	}
}
