package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/api"
	"bobbin/app/api/auth"
	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// connection is how a scripted server answers one request.
type connection func(r *http.Request) (*http.Response, error)

// script answers request after request, the last one again and again.
type script struct {
	connections []connection
	asked       []string // method, path, Last-Event-ID
	bodies      []string
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Last-Event-ID")))
	if r.Body != nil {
		body, _ := io.ReadAll(r.Body)
		s.bodies = append(s.bodies, string(body))
	}
	next := s.connections[0]
	if len(s.connections) > 1 {
		s.connections = s.connections[1:]
	}
	return next(r)
}

func answered(status int, mediaType, body string, headers ...string) connection {
	return func(*http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {mediaType}}
		for i := 0; i+1 < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		// However a stream is cut into packets, its frames are read whole.
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(iotest.OneByteReader(strings.NewReader(body)))}, nil
	}
}

// stream is a connection that brings the frames and ends in order.
func stream(frames ...string) connection {
	return answered(200, "text/event-stream", ": connected\n\n"+strings.Join(frames, ""), "Location", "/api/v1/runs/r1")
}

// broken is a stream that ends with err after the frames.
func broken(err error, frames ...string) connection {
	return func(r *http.Request) (*http.Response, error) {
		response, _ := stream(frames...)(r)
		response.Body = io.NopCloser(io.MultiReader(response.Body, iotest.ErrReader(err)))
		return response, nil
	}
}

// silent is a stream on which nothing comes any more.
func silent(frames ...string) connection {
	return func(r *http.Request) (*http.Response, error) {
		response, _ := stream(frames...)(r)
		response.Body = io.NopCloser(io.MultiReader(response.Body, hanging{r.Context()}))
		return response, nil
	}
}

type hanging struct{ ctx context.Context }

func (h hanging) Read([]byte) (int, error) { <-h.ctx.Done(); return 0, h.ctx.Err() }

func refused(err error) connection {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

func status(code int, headers ...string) connection {
	return answered(code, "application/problem+json", fmt.Sprintf(`{"status":%d,"detail":"status %d"}`, code, code), headers...)
}

// durable is the frame of a numbered event.
func durable(seq int, kind core.EventType) string {
	return fmt.Sprintf("id: %d\nevent: %s\ndata: {\"session_id\":\"s1\",\"run_id\":\"r1\",\"message_id\":\"m1\",\"message\":{\"id\":\"m1\"}}\n\n", seq, kind)
}

func text(offset int, text string) string {
	data, _ := json.Marshal(core.DeltaData{MessageID: "m1", Attempt: 1, OffsetUTF16: offset, Text: text})
	return fmt.Sprintf("event: message.delta\ndata: %s\n\n", data)
}

func problem(code int) string {
	return fmt.Sprintf("event: error\ndata: {\"status\":%d,\"detail\":\"status %d\"}\n\n", code, code)
}

// seen is what the reader of a stream got: "1 run.started", "message.delta 0 Hi".
func seen(t *testing.T, events iter.Seq2[core.Event, error]) ([]string, error) {
	t.Helper()
	var all []string
	for e, err := range events {
		if err != nil {
			return all, err
		}
		line := string(e.Type)
		if e.Seq > 0 {
			line = fmt.Sprintf("%d %s", e.Seq, e.Type)
		}
		if e.Type == core.EventMessageDelta {
			d, ok := e.Data.(core.DeltaData)
			must.True(t, ok, "the data of a delta are %T", e.Data)
			line = fmt.Sprintf("%s %d %s", line, d.OffsetUTF16, d.Text)
		}
		all = append(all, line)
	}
	return all, nil
}

var dialError = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}

// TestStreams: every way in which connections break, and what the reader sees
// (API: a cut-off reader comes back with Last-Event-ID; no gap, no repetition).
func TestStreams(t *testing.T) {
	t.Parallel()
	send := func(c *client.Client) iter.Seq2[core.Event, error] {
		return c.StartRun(context.Background(), ops.SendMessage.Operation, ops.NewMessage{InSession: ops.InSession{SessionID: "s1"}, Content: "Hi", ClientMessageID: "c1"})
	}
	run := func(c *client.Client) iter.Seq2[core.Event, error] {
		return c.WatchRun(context.Background(), "r1", core.Cursor{})
	}
	live := func(c *client.Client) iter.Seq2[core.Event, error] {
		return c.WatchSession(context.Background(), "s1", core.Cursor{Live: true})
	}
	const post, events, feed = "POST /api/v1/sessions/s1/messages", "GET /api/v1/runs/r1/events", "GET /api/v1/sessions/s1/events"
	const started, succeeded = core.EventRunStarted, core.EventRunSucceeded
	all := []string{"1 run.started", "2 run.succeeded"}
	tests := []struct {
		name        string
		open        func(*client.Client) iter.Seq2[core.Event, error]
		connections []connection
		want        []string
		asked       []string
		err         error // nil = none
		took        time.Duration
	}{
		{"one connection", send, []connection{stream(durable(1, started), durable(2, succeeded), durable(3, started))}, all, []string{post}, nil, 0},
		{"ended too soon", send, []connection{stream(durable(1, started)), stream(durable(2, succeeded))}, all, []string{post, events + " 1"}, nil, 0},
		{"broken", send, []connection{broken(io.ErrUnexpectedEOF, durable(1, started)), stream(durable(2, succeeded))}, all, []string{post, events + " 1"}, nil, 0},
		{"in the middle of an event", send, []connection{broken(syscall.ECONNRESET, durable(1, started), "id: 2\nevent: run.succ"), stream(durable(2, succeeded))},
			all, []string{post, events + " 1"}, nil, 0},
		{"repetitions are dropped", send, []connection{stream(durable(1, started)), stream(durable(1, started), durable(2, succeeded))}, all, []string{post, events + " 1"}, nil, 0},
		{"text is said once", send, []connection{
			stream(durable(1, started), text(0, "😀"), text(2, "llo")),
			stream(text(0, "😀"), text(0, "😀llo"), text(0, "😀llo, wor"), text(10, "ld"), durable(2, succeeded)),
		}, []string{"1 run.started", "message.delta 0 😀", "message.delta 2 llo", "message.delta 5 , wor", "message.delta 10 ld", "2 run.succeeded"},
			[]string{post, events + " 1"}, nil, 0},
		{"a message after the other", run, []connection{stream(text(0, "a"), durable(1, core.EventMessageCreated), text(0, "b"), durable(2, core.EventMessageDiscarded), text(0, "c"), durable(3, succeeded))},
			[]string{"message.delta 0 a", "1 message.created", "message.delta 0 b", "2 message.discarded", "message.delta 0 c", "3 run.succeeded"}, []string{events + " 0"}, nil, 0},
		{"nobody there", send, []connection{refused(dialError)}, nil, []string{post}, dialError, 0},
		{"nobody there to watch", run, []connection{refused(dialError)}, nil, []string{events + " 0"}, dialError, 0},
		{"restarted", send, []connection{stream(durable(1, started)), refused(dialError), refused(dialError), status(503), stream(durable(2, succeeded))},
			all, []string{post, events + " 1", events + " 1", events + " 1", events + " 1"}, nil, 0},
		{"broken before the answer", send, []connection{refused(io.EOF), refused(dialError), stream(durable(1, started), durable(2, succeeded))}, all, []string{post, post, post}, nil, 0},
		{"broken before the first event", send, []connection{broken(io.ErrUnexpectedEOF), stream(durable(1, started), durable(2, succeeded))}, all, []string{post, events + " 0"}, nil, 0},
		{"refused", send, []connection{status(409)}, nil, []string{post}, core.ErrConflict, 0},
		{"busy at first", send, []connection{status(503, "Retry-After", "9")}, nil, []string{post}, core.ErrUnavailable, 0},
		{"busy later", send, []connection{stream(durable(1, started)), status(503, "Retry-After", "9"), stream(durable(2, succeeded))}, all, []string{post, events + " 1", events + " 1"}, nil, 9 * time.Second},
		{"gone later", send, []connection{stream(durable(1, started)), status(404)}, all[:1], []string{post, events + " 1"}, core.ErrNotFound, 0},
		{"too slow", send, []connection{stream(durable(1, started), problem(503)), stream(durable(2, succeeded))}, all, []string{post, events + " 1"}, nil, 0},
		{"an error", send, []connection{stream(durable(1, started), problem(404))}, all[:1], []string{post}, core.ErrNotFound, 0},
		{"nothing comes any more", send, []connection{silent(durable(1, started)), stream(durable(2, succeeded))}, all, []string{post, events + " 1"}, nil, 45 * time.Second},
		{"the answer does not come", send, []connection{
			func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
			stream(durable(1, started), durable(2, succeeded)),
		}, all, []string{post, post}, nil, 45 * time.Second},
		{"never again", send, []connection{stream(durable(1, started)), refused(dialError)}, all[:1], nil, dialError, time.Minute},
		{"connects, and brings nothing", live, []connection{stream()}, nil, nil, nil, time.Minute},
		{"run had ended", run, []connection{stream(), answered(200, "application/json", `{"status":"succeeded"}`)}, nil, []string{events + " 0", "GET /api/v1/runs/r1"}, nil, 0},
		{"run had not ended", run, []connection{stream(), answered(200, "application/json", `{"status":"running"}`), stream(durable(1, succeeded))},
			[]string{"1 run.succeeded"}, []string{events + " 0", "GET /api/v1/runs/r1", events + " 0"}, nil, 0},
		{"run is gone", run, []connection{stream(), status(404)}, nil, []string{events + " 0", "GET /api/v1/runs/r1"}, core.ErrNotFound, 0},
		{"live, broken before the first event", live, []connection{
			answered(200, "text/event-stream", ": connected\n\n", "Last-Event-ID", "7"), stream(durable(8, started)), status(404),
		}, []string{"8 run.started"}, []string{feed, feed + " 7", feed + " 8"}, core.ErrNotFound, 0},
		{"resync", live, []connection{stream(durable(8, started), "event: resync\ndata: {}\n\n", durable(3, started)), stream("event: resync\ndata: {}\n\n"), stream(), status(404)},
			[]string{"8 run.started", "resync", "3 run.started", "resync"}, []string{feed, feed + " 3", feed, feed}, core.ErrNotFound, 0},
		{"resync that says where it goes on", live, []connection{stream(durable(8, started), "id: 2\nevent: resync\ndata: {}\n\n"), stream("id: 0\nevent: resync\ndata: {}\n\n"), status(404)},
			[]string{"8 run.started", "2 resync", "resync"}, []string{feed, feed + " 2", feed}, core.ErrNotFound, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := &script{connections: tt.connections}
				c, err := client.New(client.Options{URL: "http://bobbin", HTTP: &http.Client{Transport: server}})
				must.Do(t, err)
				begin := time.Now()
				got, err := seen(t, tt.open(c))
				compare.Equal(t, "events", tt.want, got)
				if !errors.Is(err, tt.err) && (tt.err != nil || tt.took != time.Minute) {
					t.Errorf("got error %v, want %v", err, tt.err)
				}
				compare.True(t, tt.took != time.Minute || err != nil, "got no error at the end of the patience, want one")
				if diff := cmp.Diff(tt.asked, server.asked); tt.asked != nil && diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				took := time.Since(begin)
				compare.True(t, took >= tt.took && took <= tt.took+10*time.Second, "got the end after %v, want about %v", took, tt.took)
				for _, body := range server.bodies {
					compare.Contains(t, "body: want the same id each time", `"client_message_id":"c1"`, body)
				}
			})
		})
	}
}

// Who reads a stream is told once that its server is away, and the stream goes on when it is
// back.
func TestLostConnectionIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &script{connections: []connection{
			stream(durable(1, core.EventRunStarted)), refused(dialError), refused(dialError), stream(durable(2, core.EventRunSucceeded)),
		}}
		lost := 0
		c := must.Get(client.New(client.Options{URL: "http://bobbin", HTTP: &http.Client{Transport: server}, OnConnectionLost: func() { lost++ }}))(t)
		if _, err := seen(t, c.StartRun(t.Context(), ops.SendMessage.Operation, ops.NewMessage{InSession: ops.InSession{SessionID: "s1"}, Content: "hi"})); err != nil || lost != 1 {
			t.Errorf("got %v, told %d times, want the whole stream and once", err, lost)
		}
		compare.Contains(t, "the first body: want an id that makes retries safe", `"client_message_id":"`, server.bodies[0])
	})
}

// TestStreamsThatCannotBeRead: what would be the same on another connection ends
// the stream.
func TestStreamsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]connection{
		"no stream":        answered(200, "text/html", "<p>hello"),
		"no media type":    answered(200, "", ""),
		"no JSON":          stream("event: run.started\ndata: x\n\n"),
		"an id of no kind": stream("id: x\nevent: run.started\ndata: {}\n\n"),
		"an id of nothing": stream("id: 0\nevent: run.started\ndata: {}\n\n"),
		"an unclear error": stream("event: error\ndata: x\n\n"),
		"a broken text":    stream("event: message.delta\ndata: {\"offset\":\"x\"}\n\n"),
		"a broken message": stream("id: 1\nevent: message.created\ndata: {\"message\":7}\n\n"),
		"a broken discard": stream("id: 1\nevent: message.discarded\ndata: {\"message_id\":7}\n\n"),
		"an event too large": func(r *http.Request) (*http.Response, error) {
			response, _ := stream()(r)
			response.Body = io.NopCloser(io.MultiReader(strings.NewReader("data: "), bytes.NewReader(make([]byte, 33<<20))))
			return response, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &script{connections: []connection{c}}
			asked := must.Get(client.New(client.Options{URL: "http://bobbin", HTTP: &http.Client{Transport: server}}))(t)
			compare.True(t, compare.ErrorOf(seen(t, asked.WatchRun(t.Context(), "r1", core.Cursor{}))) != nil, "got no error, want one")
			compare.Equal(t, "requests", 1, len(server.asked))
		})
	}
}

// TestLeaving: leaving the loop or ending the context closes the connection.
func TestLeaving(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &script{connections: []connection{silent(durable(1, core.EventRunStarted))}}
		c := must.Get(client.New(client.Options{URL: "http://bobbin", HTTP: &http.Client{Transport: server}}))(t)
		for _, err := range c.WatchSession(t.Context(), "s1", core.Cursor{}) {
			must.Do(t, err)
			break
		}
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		compare.Error(t, "err: want the cause of the context's end", why, compare.ErrorOf(seen(t, c.WatchSession(ctx, "s1", core.Cursor{}))))
		server.connections = []connection{stream(durable(1, core.EventRunStarted)), refused(dialError)}
		ctx, cancel = context.WithCancelCause(t.Context())
		time.AfterFunc(10*time.Second, func() { cancel(why) })
		compare.Error(t, "while it waits between two connections: want the cause", why, compare.ErrorOf(seen(t, c.WatchSession(ctx, "s1", core.Cursor{}))))
	})
}

// TestOtherServers: answers that are not Bobbin's are errors one can read.
func TestOtherServers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		connection connection
		want       string
	}{
		{"a proxy's page", answered(502, "text/html", "<h1>Bad Gateway"), "the server answered with status 502"},
		{"half a problem", answered(404, "application/json", `{"title":"Not Found"}`), "Not Found"},
		{"no JSON", answered(200, "text/html", "<p>hello"), "GET /api/v1/runs/r1: unexpected response: invalid character '<' looking for beginning of value"},
		{"cut off", broken(io.ErrUnexpectedEOF), "read response: unexpected EOF"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := must.Get(client.New(client.Options{URL: "http://bobbin", HTTP: &http.Client{Transport: &script{connections: []connection{tt.connection}}}}))(t)
			if _, err := client.Call(t.Context(), c, ops.GetRun, ops.InRun{RunID: "r1"}); err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// TestMain runs the tests.
func TestMain(m *testing.M) { apitest.Main(m) }

// dial returns a client of a server over the world.
func dial(t *testing.T, b *apitest.World, key string) *client.Client {
	t.Helper()
	b.Options.Auth = auth.New(auth.Options{Keys: []auth.Key{auth.NewKey(core.LocalOwner, "s3cret", core.ReadWrite)}, Required: true})
	server := httptest.NewServer(api.New(b.Options))
	t.Cleanup(server.Close)
	return must.Get(client.New(client.Options{URL: server.URL + "/", Key: key, HTTP: server.Client()}))(t)
}

// TestProblems: the kind of an error survives the way over HTTP.
func TestProblems(t *testing.T) {
	t.Parallel()
	kinds := []error{
		core.ErrInvalid, core.ErrForbidden, core.ErrUnauthorized, core.ErrNotFound, core.ErrConflict, core.ErrStale, core.ErrCanceled, core.ErrTooLarge,
		core.ErrUnprocessable, core.ErrContextFloor, core.ErrRateLimited, core.ErrUnavailable, core.ErrModel, core.ErrTimeout,
	}
	backend := apitest.New(t)
	c := dial(t, backend, "s3cret")
	for _, kind := range kinds {
		fields := []core.FieldError{{Field: "f", Detail: "d"}}
		backend.Hooks["Sessions.Get"] = func(context.Context) error { return &core.Error{Kind: kind, Message: "in words", Fields: fields} }
		_, err := client.Call(t.Context(), c, ops.GetSession, ops.InSession{SessionID: core.SessionID(apitest.SessionID)})
		var problem *client.ProblemError
		if !errors.Is(err, kind) || !errors.As(err, &problem) {
			t.Errorf("got %v, want %v", err, kind)
			continue
		}
		compare.True(t, err.Error() == "in words" && problem.RequestID != "" && cmp.Equal(problem.Errors, fields), "got problem %+v, want the words, the fields and a request id", problem)
	}
	backend.Hooks["Sessions.Get"] = func(context.Context) error { return errors.New("secret") }
	_, err := client.Call(t.Context(), c, ops.GetSession, ops.InSession{SessionID: core.SessionID(apitest.SessionID)})
	var problem *client.ProblemError
	compare.True(t, errors.As(err, &problem) && err.Error() == "internal error (request id "+problem.RequestID+")", "got %v, want an internal error with its request id", err)
	compare.Error(t, "with a wrong key", core.ErrUnauthorized, compare.ErrorOf(client.Call(t.Context(), dial(t, backend, "wrong"), ops.ListAgents, struct{}{})))
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "localhost:8080", "ftp://localhost", "http://", "http://a b", ":"} {
		compare.True(t, compare.ErrorOf(client.New(client.Options{URL: url})) != nil, "got no error for url %q, want one", url)
	}
}

// torn writes a part and fails.
type torn struct{}

var errFull = errors.New("the disk is full")

func (torn) Write([]byte) (int, error) { return 0, errFull }

func TestExportErrors(t *testing.T) {
	t.Parallel()
	backend := apitest.New(t)
	c := dial(t, backend, "s3cret")
	if err := client.Download(t.Context(), c, ops.ExportSession, ops.SessionExport{InSession: ops.InSession{SessionID: core.SessionID(apitest.SessionID)}, Format: core.ExportJSON}, torn{}); !errors.Is(err, errFull) {
		t.Errorf("got %v, want what the writer says", err)
	}
	must.Do(t, backend.Database.Gorm.WithContext(t.Context()).Exec("UPDATE messages SET metadata = '{'").Error)
	if err := client.Download(t.Context(), c, ops.ExportSession, ops.SessionExport{InSession: ops.InSession{SessionID: core.SessionID(apitest.SessionID)}, Format: core.ExportJSON}, &strings.Builder{}); err == nil {
		t.Error("got no error for an export that failed")
	}
}
