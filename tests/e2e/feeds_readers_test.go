package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"bobbin/app/core"
)

// audience is many readers of feeds.
type audience struct {
	readers []*feedReader
	gone    sync.WaitGroup
	cancel  context.CancelFunc
}

// errSeen says that a reader has seen enough.
var errSeen = errors.New("seen enough")

// durable stands for every event with a number.
const durable core.EventType = "durable"

// feedReader reads one feed, and checks that everything comes once and in order.
type feedReader struct {
	frames *bufio.Reader
	seq    int64                  // of the last durable event
	text   map[core.MessageID]int // bytes of messages on their way
	marks  map[core.EventType]chan struct{}
	failed error  // of the reader's goroutine, when it has ended
	until  string // in the data of the event after which it has seen enough; empty = none
}

// newFeedReader reads the answer to a request for a feed.
func newFeedReader(answer *http.Response) (*feedReader, error) {
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s", answer.Status)
	}
	seq, err := strconv.ParseInt(answer.Header.Get("Last-Event-ID"), 10, 64)
	r := &feedReader{frames: bufio.NewReader(answer.Body), seq: seq, text: map[core.MessageID]int{}, marks: map[core.EventType]chan struct{}{}}
	for _, kind := range []core.EventType{durable, core.EventSessionUpdated, core.EventMessageCreated, core.EventRunSucceeded} {
		r.marks[kind] = make(chan struct{}, 10_000) // more than a test has of them
	}
	return r, err
}

// audience opens feeds of the sessions and reads them until leave.
func (s *feedServer) audience(ctx context.Context, t *testing.T, sessions []core.SessionID) *audience {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	a := &audience{readers: make([]*feedReader, len(sessions)), cancel: cancel}
	inParallel(len(sessions), func(i int) {
		answer, err := s.open(ctx, sessions[i], "") //nolint:bodyclose // closed below
		if err != nil {
			t.Errorf("feed %d: %v", i, err)
			return
		}
		if a.readers[i], err = newFeedReader(answer); err != nil {
			t.Errorf("feed %d: %v", i, err)
			return
		}
		a.gone.Go(func() {
			defer answer.Body.Close()
			a.readers[i].failed = a.readers[i].read()
		})
	})
	if t.Failed() {
		t.FailNow()
	}
	return a
}

// open asks for a feed, from the event on that is named.
func (s *feedServer) open(ctx context.Context, session core.SessionID, after string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/sessions/"+string(session)+"/events", nil)
	if err != nil {
		return nil, err
	}
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	return s.http.Do(r)
}

// leave ends the readers and fails the test for what they found.
func (a *audience) leave(t *testing.T) {
	t.Helper()
	a.cancel()
	a.gone.Wait()
	faults := 0
	for i, r := range a.readers {
		if !errors.Is(r.failed, context.Canceled) {
			if faults++; faults < 5 {
				t.Errorf("reader %d: %v", i, r.failed)
			}
		}
	}
}

// await returns when every reader has had n more events of the type.
func (a *audience) await(ctx context.Context, t *testing.T, n int, kind core.EventType) {
	t.Helper()
	for i, r := range a.readers {
		for range n {
			select {
			case _, open := <-r.marks[kind]:
				if !open {
					t.Fatalf("reader %d has ended", i)
				}
			case <-ctx.Done():
				t.Fatalf("reader %d waits for %s", i, kind)
			}
		}
	}
}

// read reads to the end, which is an error.
func (r *feedReader) read() error {
	defer func() {
		for _, mark := range r.marks {
			close(mark)
		}
	}()
	var id, kind string
	for {
		line, err := r.frames.ReadSlice('\n')
		whole := slices.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = r.frames.ReadSlice('\n')
			whole = append(whole, line...)
		}
		if err != nil {
			return err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(string(whole), "\n"), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			if err := r.take(id, core.EventType(kind), []byte(value)); err != nil {
				return err
			}
		case "": // the end of a frame; the opening has an id only
			id = ""
		}
	}
}

// take checks an event.
func (r *feedReader) take(id string, kind core.EventType, data []byte) error {
	var d struct {
		MessageID core.MessageID `json:"message_id"`
		Offset    int            `json:"offset_utf16"`
		Text      string         `json:"text"`
	}
	head := data
	if len(data) > 2000 { // nothing of the message is wanted
		head = slices.Concat(data[:bytes.Index(data, []byte(`,"message"`))], []byte("}"))
	}
	if err := json.Unmarshal(head, &d); err != nil {
		return err
	}
	if id != "" {
		seq, err := strconv.ParseInt(id, 10, 64)
		if err != nil || seq != r.seq+1 {
			return fmt.Errorf("event %q came after %d", id, r.seq)
		}
		r.seq = seq
		r.marks[durable] <- struct{}{}
	}
	if r.until != "" && bytes.Contains(data, []byte(r.until)) {
		return errSeen
	}
	if kind == core.EventMessageDelta {
		if d.Offset != r.text[d.MessageID] {
			return fmt.Errorf("text at %d after %d", d.Offset, r.text[d.MessageID])
		}
		r.text[d.MessageID] += core.UTF16Len(d.Text)
	}
	if mark := r.marks[kind]; mark != nil {
		mark <- struct{}{}
	}
	return nil
}

// sleeper asks for a feed and does not read it.
type sleeper struct {
	conn net.Conn
	seq  string // of the last event before the feed
}

// sleeper opens one, and reads no further than that it is connected.
func (s *feedServer) sleeper(t *testing.T, session core.SessionID) *sleeper {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Error(err)
	}
	if _, err := fmt.Fprintf(conn, "GET /api/v1/sessions/%s/events HTTP/1.1\r\nHost: localhost\r\n\r\n", session); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil) //nolint:bodyclose // it is not read, on purpose
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v for a feed", answer, err)
	}
	return &sleeper{conn: conn, seq: answer.Header.Get("Last-Event-ID")}
}

// comeBack asks again, as a browser does, with the last id that was read: nothing is
// missing and nothing comes twice.
func (z *sleeper) comeBack(ctx context.Context, t *testing.T, s *feedServer, session core.SessionID) {
	t.Helper()
	_ = z.conn.Close()
	answer, err := s.open(ctx, session, z.seq)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	again, err := newFeedReader(answer)
	if err != nil {
		t.Fatal(err)
	}
	newest, err := s.newest(ctx, session)
	if err != nil {
		t.Fatal(err)
	}
	first := again.seq
	go func() { again.failed = again.read() }()
	for range newest - first {
		open := true
		select {
		case _, open = <-again.marks[durable]:
		case <-ctx.Done():
		}
		if !open || ctx.Err() != nil {
			t.Fatalf("events up to %d did not come", newest)
		}
	}
}
