package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/api"
	"bobbin/app/core"
	"bobbin/app/core/quota"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// pipes is a listener whose connections are in memory: their time is that of the test.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

// local is a connection from this machine.
type local struct{ net.Conn }

func (local) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40000} }

// connect has the server serve one connection, to the end of the test.
func connect(t *testing.T, opts api.Options) net.Conn {
	t.Helper()
	conns := make(pipes, 1)
	server := &http.Server{Handler: api.New(opts), ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(conns) }()
	client, side := net.Pipe()
	conns <- local{side}
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Close()
		<-ended
		time.Sleep(time.Minute) // the server lingers on connections that it closed
	})
	return client
}

// A body has to come at a rate from its first seconds on, whatever time the whole of it
// may take and however much of it came quickly.
func TestPaceOfBodies(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		piece, pieces int // a piece each second
		status        int
		after         time.Duration
	}{
		"a byte now and then":  {1, 1000, 408, 10 * time.Second},
		"fast, then nothing":   {1 << 20, 1, 408, 11 * time.Second},
		"as slow as may be":    {33 << 10, 30, 200, 30 * time.Second},
		"a little slower":      {30 << 10, 1000, 408, 150 * time.Second},
		"slower than in total": {40 << 10, 1600, 408, 286 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			opts, _ := options(apitest.New(t))
			conn := connect(t, opts)
			begin := time.Now()
			wrote := make(chan struct{})
			go func() {
				defer close(wrote)
				fmt.Fprintf(conn, "POST %s/messages/import HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/jsonl\r\nContent-Length: %d\r\n\r\n", sessionPath(), tt.piece*max(tt.pieces, 2))
				for i := range max(tt.pieces, 2) {
					if i < tt.pieces {
						time.Sleep(time.Second)
						if _, err := io.WriteString(conn, strings.Repeat(" ", tt.piece)); err != nil {
							return
						}
					}
				}
			}()
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Errorf("%s: read the answer: %v", name, err)
				return
			}
			_ = response.Body.Close()
			// A piece and the end of the time may come together, each time.
			took := time.Since(begin)
			compare.True(t, response.StatusCode == tt.status && (took-tt.after).Abs() <= 10*time.Second, "%s: got %d after %v, want %d after %v", name, response.StatusCode, took, tt.status, tt.after)
			_ = conn.Close()
			<-wrote
		})
	}
}

// Who does not read an answer is cut off, however long it is, and what it took is given
// back.
func TestPaceOfAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		piece int // that is read each second
		whole bool
		after time.Duration
	}{
		"stalled":           {0, false, 30 * time.Second},
		"slow":              {16 << 10, false, 57 * time.Second},
		"as slow as may be": {40 << 10, true, 103 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			backend := apitest.New(t)
			must.Do(t, backend.Database.Gorm.WithContext(t.Context()).Exec("UPDATE messages SET content = ?", strings.Repeat("a", 1<<20)).Error) // four
			opts, _ := options(backend)
			memory := quota.New(quota.Limits{Total: 64 << 20, Owner: 64 << 20, User: 64 << 20})
			opts.Space.Memory = memory
			conn := connect(t, opts)
			begin := time.Now()
			fmt.Fprintf(conn, "GET %s/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", sessionPath())
			synctest.Wait()
			if got := memory.Used(); got < 4<<20 || got > 6<<20 {
				t.Errorf("%s: got %d bytes held for a page of 4 MiB, want those and a little more", name, got)
			}
			got, err := 0, error(nil)
			for buf := make([]byte, tt.piece); err == nil && tt.piece > 0; time.Sleep(time.Second) {
				var n int
				n, err = io.ReadFull(conn, buf)
				got += n
			}
			for memory.Used() > 0 {
				time.Sleep(time.Second)
			}
			took := time.Since(begin)
			compare.True(t, (took-tt.after).Abs() <= 10*time.Second && tt.whole == (got > 4<<20), "%s: got %d bytes, over after %v, want %v (whole: %t)", name, got, took, tt.after, tt.whole)
		})
	}
}

// A request that only reads waits until there is memory for its answer, and is refused
// after some seconds; one that changes something is answered in any case.
func TestAnswersWaitForMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		opts, _ := options(apitest.New(t))
		memory := quota.New(quota.Limits{Total: 20 << 20, Owner: 20 << 20, User: 20 << 20, What: "memory"})
		opts.Space.Memory = memory
		server := api.New(opts)
		others := memory.Hold(core.Tenant{Owner: "bob"})
		must.Do(t, others.Grow(19<<20+1))
		begin := time.Now()
		wantProblem(t, do(server, request("GET", sessionPath(), "")), 503, quota.CodeExceeded)
		compare.Equal(t, "an answer after: want 10 s", 10*time.Second, time.Since(begin))
		compare.Equal(t, "status for a session", 201, do(server, request("POST", "/api/v1/sessions", "{}")).Code)
		time.AfterFunc(time.Second, func() { others.Keep(18 << 20) })
		begin = time.Now()
		w := do(server, request("GET", sessionPath(), ""))
		compare.Equal(t, "status and time when there is room", []any{200, time.Second}, []any{w.Code, time.Since(begin)})
		time.AfterFunc(time.Second, func() { others.Keep(3 << 20) })
		begin = time.Now()
		if w := do(server, request("GET", sessionPath()+"/messages", "")); w.Code != 200 || time.Since(begin) != time.Second {
			t.Errorf("got %d after %v for a page of messages, want 200 when there is room for all of it", w.Code, time.Since(begin))
		}
		others.Release()
		compare.Equal(t, "bytes held in the end", 0, memory.Used())
	})
}

// A search that takes longer than 5 seconds ends with 503 and says when to come back; a
// user has two at once, those of its agents included, an owner eight, and others are not held up by them.
func TestSearchesAreBounded(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/api/v1/search?q=pump", "/api/v1/sessions?q=pump"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				backend := apitest.New(t)
				untilEnd := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
				backend.Hooks["Search.Messages"], backend.Hooks["Sessions.List"] = untilEnd, untilEnd
				opts := userOptions(backend)
				server := api.New(opts)
				answers := make(chan *httptest.ResponseRecorder, 20)
				ask := func(headers ...string) { go func() { answers <- do(server, request("GET", path, "", headers...)) }() }
				got := func() *httptest.ResponseRecorder { synctest.Wait(); return <-answers }
				ask(asEve)
				ask(asEve)
				synctest.Wait()
				ask(asEve)
				wantProblem(t, got(), 429, quota.CodeExceeded)
				agent := make(chan error, 1)
				go func() {
					_, err := backend.AgentSearch.Messages(t.Context(), core.Tenant{Owner: core.LocalOwner, User: "eve"}, core.SearchQuery{Text: "pump"})
					agent <- err
				}()
				synctest.Wait()
				compare.Equal(t, "searches of an agent that did not wait", 0, len(agent))
				for range 6 { // of kim and of the owner
					ask(asKim)
					ask()
					synctest.Wait()
				}
				for range 6 {
					wantProblem(t, got(), 429, quota.CodeExceeded)
				}
				for range 8 {
					w := <-answers
					wantProblem(t, w, 503, "search_time")
					compare.Equal(t, "Retry-After", "5", w.Header().Get("Retry-After"))
				}
				compare.Error(t, "the agent's search", nil, <-agent)
				clear(backend.Hooks)
				compare.Equal(t, "when all had ended", 200, do(server, request("GET", path, "", asEve)).Code)
			})
		})
	}
}

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
	compare.True(t, w.Header().Get("Retry-After") != "", "got no Retry-After")
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
	got := disk.Used()
	compare.True(t, got >= 600, "got %d bytes on the disk, want those of 12 bodies", got)
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
	files := must.Get(os.ReadDir(opts.Space.Folder))(t)
	compare.True(t, len(files) == 0, "got files %v in the end, want none", files)
}

// A disk that is full is nobody's mistake.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	opts.Space.Folder = t.TempDir() + "/gone"
	server := api.New(opts)
	w := do(server, request("POST", sessionPath()+"/messages/import", "{}", "Content-Type: application/jsonl"))
	p := wantProblem(t, w, 503, "unavailable")
	compare.True(t, !strings.Contains(fmt.Sprint(p), opts.Space.Folder) && w.Header().Get("Retry-After") != "", "got %+v, want when to come again and no path", p)
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
