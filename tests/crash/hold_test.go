package crash_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
)

// checkOneAnswer: one question, one answer, by the second attempt.
func checkOneAnswer(t *testing.T, p place, c *client.Client, accepted core.Run) {
	t.Helper()
	run, err := c.Run(t.Context(), accepted.ID)
	if err != nil {
		t.Fatal(err)
	}
	if run.Status != core.RunSucceeded || run.Attempt != 2 {
		t.Errorf("run: got %s in attempt %d, want %s in attempt 2", run.Status, run.Attempt, core.RunSucceeded)
	}
	log, err := repositories.NewMessages(dbtest.Open(t, p.database).Gorm).GetMessagesAfter(t.Context(), core.Tenant{Owner: core.LocalOwner}, run.SessionID, "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range log {
		got = append(got, fmt.Sprintf("%d %s: %s", m.Seq, m.Role, m.Content))
	}
	want := "1 user: Are you there?\n2 assistant: answer to: Are you there?"
	if strings.Join(got, "\n") != want {
		t.Errorf("log: got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// checkFrames looks at everything that the watcher was sent over both connections:
// numbers without gap or repetition, each message created once, and no text that
// is left standing: what was shown is created, or taken back.
func checkFrames(t *testing.T, frames []frame) {
	t.Helper()
	var seq int64
	texts, created, discarded := map[core.MessageID]string{}, map[core.MessageID]int{}, map[core.MessageID]int{}
	var answers int
	for _, f := range frames {
		if f.id > 0 && f.id != seq+1 {
			t.Errorf("event %s has number %d after %d", f.event, f.id, seq)
		}
		seq = max(seq, f.id)
		switch f.event {
		case core.EventMessageDelta:
			if have := core.UTF16Len(texts[f.data.MessageID]); f.data.OffsetUTF16 != have {
				t.Errorf("text of message %s: a piece for offset %d after %d", f.data.MessageID, f.data.OffsetUTF16, have)
			}
			texts[f.data.MessageID] += f.data.Text
		case core.EventMessageDiscarded:
			discarded[f.data.MessageID]++
		case core.EventMessageCreated:
			m := f.data.Message
			created[m.ID]++
			if m.Role == core.RoleAssistant {
				answers++
			}
			if !strings.HasPrefix(m.Content, texts[m.ID]) {
				t.Errorf("message %s is %q, but its text on the way was %q", m.ID, m.Content, texts[m.ID])
			}
		}
	}
	for id, n := range created {
		if n != 1 || discarded[id] != 0 {
			t.Errorf("message %s was created %d times and discarded %d times, want 1 and 0", id, n, discarded[id])
		}
	}
	for id, text := range texts {
		if created[id]+discarded[id] != 1 {
			t.Errorf("the text %q of message %s was shown and then neither created nor taken back", text, id)
		}
	}
	if answers != 1 || len(created) != 2 {
		t.Errorf("got %d messages, %d of them answers, want 2 and 1", len(created), answers)
	}
}

// frame is one server-sent event as it came.
type frame struct {
	id    int64 // 0 = none
	event core.EventType
	head  struct {
		RunID core.RunID `json:"run_id"`
		At    time.Time  `json:"at"`
	}
	data struct {
		core.DeltaData
		Message core.Message `json:"message"`
	}
	came time.Time
}

// rawWatcher reads a session's feed as a browser does: when the connection breaks
// it comes back with the number of the last event, and sorts nothing out.
type rawWatcher struct {
	mu     sync.Mutex
	frames []frame       // guarded by mu
	more   chan struct{} // closed when a frame comes; guarded by mu
}

func watchRaw(t *testing.T, b *bobbin, session core.SessionID) *rawWatcher {
	t.Helper()
	w := &rawWatcher{more: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for first := true; ctx.Err() == nil; first = false {
			w.connection(ctx, b, session, first)
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return w
}

// connection reads one connection to its end.
func (w *rawWatcher) connection(ctx context.Context, b *bobbin, session core.SessionID, first bool) {
	transport := &http.Transport{DialContext: b.door.Dial, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/v1/sessions/"+string(session)+"/events?after=0", nil)
	if err != nil {
		return
	}
	if last := w.last(); !first && last > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatInt(last, 10))
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		pause(ctx, time.Millisecond)
		return
	}
	defer func() { _ = res.Body.Close() }()
	var f frame
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			f.id, _ = strconv.ParseInt(value, 10, 64)
		case "event":
			f.event = core.EventType(value)
		case "data":
			_ = json.Unmarshal([]byte(value), &f.head)
			_ = json.Unmarshal([]byte(value), &f.data)
		case "":
			if f.event != "" {
				w.add(f)
			}
			f = frame{}
		}
	}
}

func (w *rawWatcher) add(f frame) {
	f.came = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frames = append(w.frames, f)
	close(w.more)
	w.more = make(chan struct{})
}

// last returns the number of the last event.
func (w *rawWatcher) last() (n int64) {
	for _, f := range w.all() {
		n = max(n, f.id)
	}
	return n
}

// all returns what has come so far.
func (w *rawWatcher) all() []frame {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]frame(nil), w.frames...)
}

// await returns the first frame that is wanted.
func (w *rawWatcher) await(t *testing.T, what string, wanted func(frame) bool) frame {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for seen := 0; ; {
		w.mu.Lock()
		frames, more := w.frames, w.more
		w.mu.Unlock()
		for ; seen < len(frames); seen++ {
			if wanted(frames[seen]) {
				return frames[seen]
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("%s did not come within %s; came: %v", what, patience, frames)
		}
	}
}
