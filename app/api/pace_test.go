package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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
			if took := time.Since(begin); response.StatusCode != tt.status || (took-tt.after).Abs() > 10*time.Second {
				t.Errorf("%s: got %d after %v, want %d after %v", name, response.StatusCode, took, tt.status, tt.after)
			}
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
			if took := time.Since(begin); (took-tt.after).Abs() > 10*time.Second || tt.whole != (got > 4<<20) {
				t.Errorf("%s: got %d bytes, over after %v, want %v (whole: %t)", name, got, took, tt.after, tt.whole)
			}
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
