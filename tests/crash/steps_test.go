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
	"bobbin/tests/provider"
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
		model, err := provider.New(provider.Options{Window: modelWindow})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(model.Close)
		b := newBobbin(t, p, model.URL)
		b.start(t)
		w := writer{t: t, b: b, lines: lines.String()}
		for _, busy := range []string{"import", "fork", "purge"} {
			session, err := client.Call(t.Context(), w.operator(), ops.CreateSession, ops.NewSession{})
			if err != nil {
				t.Fatal(err)
			}
			before := 0
			if busy != "import" {
				before = n
				if err := w.write(t.Context(), "import", session.ID); err != nil {
					t.Fatal(err)
				}
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
	c, err := client.New(client.Options{URL: s.URL, Key: s.Token, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// write imports into the session, forks it or removes it.
func (w writer) write(ctx context.Context, what string, id core.SessionID) (err error) {
	switch c := w.operator(); what {
	case "import":
		_, err = c.ImportMessages(ctx, core.ImportMessages{SessionID: id, Body: strings.NewReader(w.lines), Format: core.ImportLines})
	case "fork":
		_, err = client.Call(ctx, c, ops.ForkSession, core.ForkSession{SessionID: id})
	case "purge":
		_, err = client.Call(ctx, c, ops.PurgeSessions, core.PurgeSessions{IDs: []core.SessionID{id}})
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
	if err := d.Close(); err != nil { // the restart must find what a dead process left
		w.t.Error(err)
	}
	w.b.Kill()
	<-ended
	if busy != "import" { // whose process is known by its name
		w.lapse()
	}
	w.b.start(w.t)
}

// lapse ends the leases that the dead process had.
func (w writer) lapse() {
	w.t.Helper()
	d := w.b.place.open(w.t)
	defer func() { _ = d.Close() }()
	if err := d.Gorm.Exec("UPDATE sessions SET busy_until = '2000-01-01 00:00:00+00:00' WHERE busy <> ''").Error; err != nil {
		w.t.Fatal(err)
	}
}

func (w writer) count(d *db.DB, query string, args ...any) (n int) {
	w.t.Helper()
	if err := d.Gorm.WithContext(w.t.Context()).Raw(query, args...).Scan(&n).Error; err != nil {
		w.t.Fatal(err)
	}
	return n
}

// wait waits until the condition holds for no session.
func (w writer) wait(d *db.DB, what, condition string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for w.count(d, "SELECT COUNT(*) FROM sessions WHERE "+condition) > 0 {
		if !pause(ctx, 20*time.Millisecond) {
			w.t.Fatalf("waited %s until %s", patience, what)
		}
	}
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
		if got := w.count(d, query); got != want {
			w.t.Errorf("after a killed %s: %s: got %d, want %d", busy, query, got, want)
		}
	}
	if busy == "purge" {
		return
	}
	if answer, err := w.operator().SendAndWait(ctx, core.SendMessage{SessionID: id, Content: "Are you there?"}); err != nil || answer.Run.Status != core.RunSucceeded {
		w.t.Errorf("a message after a killed %s: %+v, %v", busy, answer.Run, err)
	}
	if _, err := client.Call(ctx, w.operator(), ops.PurgeSessions, core.PurgeSessions{IDs: []core.SessionID{id}}); err != nil {
		w.t.Errorf("purge: %v", err)
	}
}
