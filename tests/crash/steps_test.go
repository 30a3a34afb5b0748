package crash_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/datadir"
	"bobbin/app/db"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
	"bobbin/tests/seed"
)

// TestKilledInTheMiddleOfALargeWrite: a history is imported, a session is forked or
// removed, which takes many transactions, and the process is killed in between. Nobody
// ever sees a part of it, and what was written is gone soon after the restart.
func TestKilledInTheMiddleOfALargeWrite(t *testing.T) {
	t.Parallel()
	const n = 6000
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"role":"user","content":"message %d of a long history"}`+"\n", i)
	}
	eachPlace(t, func(t *testing.T, p place) {
		model := apptest.NewProvider(t, provider.Options{Window: modelWindow})
		b := newBobbin(t, p, model.URL)
		b.start(t)
		w := writer{t: t, b: b, lines: lines.String()}
		for _, busy := range []string{"import", "fork", "purge"} {
			session := must.Get(client.Call(t.Context(), w.operator(), ops.CreateSession, ops.NewSession{}))(t)
			before := 0
			if busy != "import" {
				before = n
				must.Do(t, w.write(t.Context(), "import", session.ID))
			}
			w.killDuring(busy, session.ID)
			w.check(busy, session.ID, before)
		}
		b.stop(t)
	})
}

// writer does what takes many transactions.
type writer struct {
	t     *testing.T
	b     *bobbin
	lines string
}

// operator returns a client with the token of the present process, which may remove
// sessions. Its connections do not wait for another process.
func (w writer) operator() *client.Client {
	w.t.Helper()
	s, ok := datadir.Running(w.b.Dir)
	if !ok {
		w.t.Fatal("bobbin has not announced itself")
	}
	return must.Get(client.New(client.Options{URL: s.URL, Key: s.Token, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}))(w.t)
}

// write imports into the session, forks it or removes it.
func (w writer) write(ctx context.Context, what string, id core.SessionID) (err error) {
	switch c := w.operator(); what {
	case "import":
		_, err = c.ImportMessages(ctx, core.ImportMessages{SessionID: id, Body: strings.NewReader(w.lines), Format: core.ImportLines})
	case "fork":
		_, err = client.Call(ctx, c, ops.ForkSession, core.ForkSession{SessionID: id})
	case "purge":
		_, err = client.Call(ctx, c, ops.Purge, core.Purge{IDs: []core.SessionID{id}})
	}
	return err
}

// killDuring begins the write, kills the process in the middle of it, and starts the
// next one.
func (w writer) killDuring(busy string, id core.SessionID) {
	w.t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.write(w.t.Context(), busy, id) // the process is killed
	}()
	d := w.b.place.open(w.t)
	for w.count(d, "SELECT COUNT(*) FROM sessions WHERE busy = ?", busy) == 0 {
		select {
		case <-ended:
			w.t.Fatalf("the %s ended before it was seen", busy)
		case <-time.After(time.Millisecond):
		}
	}
	must.Do(w.t, d.Close()) // the restart must find what a dead process left
	w.b.Kill()
	<-ended
	if busy != "import" { // whose process is known by its name; the leases of others end here
		d := w.b.place.open(w.t)
		must.Do(w.t, d.Gorm.Exec("UPDATE sessions SET busy_until = '2000-01-01 00:00:00+00:00' WHERE busy <> ''").Error)
		must.Do(w.t, d.Close())
	}
	w.b.start(w.t)
}

func (w writer) count(d *db.DB, query string, args ...any) (n int) {
	w.t.Helper()
	must.Do(w.t, d.Gorm.WithContext(w.t.Context()).Raw(query, args...).Scan(&n).Error)
	return n
}

// wait waits until the condition holds for no session.
func (w writer) wait(d *db.DB, what, condition string) {
	w.t.Helper()
	process.Await(w.t, what, func() bool { return w.count(d, "SELECT COUNT(*) FROM sessions WHERE "+condition) == 0 })
}

// check waits until nothing is busy any more, and looks at what is left.
func (w writer) check(busy string, id core.SessionID, before int) {
	w.t.Helper()
	d := w.b.place.open(w.t)
	defer func() { _ = d.Close() }()
	w.wait(d, "a killed "+busy+" is recovered", "busy <> ''")
	w.wait(d, "what is left after a killed "+busy+" is indexed", "indexed_seq < last_seq")
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	sessions := 1
	if busy == "purge" {
		sessions, before = 0, 0
	}
	for query, want := range map[string]int{
		"SELECT COUNT(*) FROM sessions":                                                 sessions,
		"SELECT COALESCE(SUM(message_count), 0) FROM sessions":                          before,
		"SELECT COUNT(*) FROM messages":                                                 before,
		"SELECT COUNT(*) FROM search_entries WHERE message_id IS NOT NULL":              before,
		"SELECT COUNT(*) FROM session_events WHERE type = 'messages.imported'":          min(before, 1),
		"SELECT COUNT(*) FROM session_events WHERE type <> 'messages.imported'":         0,
		"SELECT COUNT(*) FROM sessions WHERE last_seq <> message_count OR last_seq < 0": 0,
	} {
		compare.Equal(w.t, fmt.Sprintf("after a killed %s: %s", busy, query), want, w.count(d, query))
	}
	if busy == "purge" {
		return
	}
	if answer, err := apptest.SendAndWait(ctx, w.operator(), core.SendMessage{SessionID: id, Content: "Are you there?"}); err != nil || answer.Run.Status != core.RunSucceeded {
		w.t.Errorf("a message after a killed %s: %+v, %v", busy, answer.Run, err)
	}
	compare.Error(w.t, "purge", nil, compare.ErrorOf(client.Call(ctx, w.operator(), ops.Purge, core.Purge{IDs: []core.SessionID{id}})))
}

// TestKilledWhileItStarts: the first start on an empty database makes the schema;
// however often it is killed at that, the next one goes on.
func TestKilledWhileItStarts(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, p place) {
		model := apptest.NewProvider(t, provider.Options{Window: modelWindow})
		b := newBobbin(t, p, model.URL)
		for _, after := range startDelays() {
			must.Do(t, b.Launch())
			process.Pause(t.Context(), after)
			b.Kill()
		}
		b.start(t)
		c := b.client(t)
		session := must.Get(client.Call(t.Context(), c, ops.CreateSession, ops.NewSession{}))(t)
		a, err := apptest.SendAndWait(t.Context(), c, core.SendMessage{SessionID: session.ID, Content: "Hello"})
		if err != nil || a.Message == nil || a.Message.Content != "answer to: Hello" {
			t.Errorf("got %+v, %v, want an answer", a, err)
		}
		b.stop(t)
	})
}

// startDelays are how long after the start the process is killed: in CI a fixed list.
func startDelays() []time.Duration {
	delays := []time.Duration{0, 5 * time.Millisecond, 15 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond, 110 * time.Millisecond}
	if seed.IsChosen() {
		for range 12 {
			delays = append(delays, randomDelay(120*time.Millisecond))
		}
	}
	return delays
}
