package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// nextClients is how many clients write to a session of their own at once.
const nextClients = 64

// Clients that write as soon as an answer has ended, on a connection of their own, beside the
// indexing of what they wrote, imports and searches: nobody is told that the session, or anything
// that the last run held, is busy. Each client has all the open streams that it may have.
func TestShowNext(t *testing.T) {
	t.Parallel()
	turns := apptest.ChooseSize(4*nextClients, 50_000)
	if n, err := strconv.Atoi(os.Getenv("BOBBIN_TEST_NEXT")); err == nil {
		turns = n
	}
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{Window: 8192})
		streams := func(c *config.Config) {
			c.Limits.RequestsPerSecond = 0
			c.Limits.OpenStreamsPerOwner = nextClients
			c.Limits.RequestMemoryBytes = 1 << 30 // the import beside them takes its share
		}
		h := apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p), streams)
		plain := &http.Client{Transport: process.PatientTransport{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * nextClients}}}
		t.Cleanup(plain.CloseIdleConnections)
		c := must.Get(client.New(client.Options{URL: h.URL, HTTP: plain}))(t)
		w := &nextWorld{client: c, refused: map[string]int{}, done: map[string]int{}}
		stop := w.startLoad(t)
		began := time.Now()
		var all sync.WaitGroup
		for i := range nextClients {
			id := apptest.NewSession(t, c, ops.NewSession{})
			all.Go(func() { w.talk(t, id, i, turns/nextClients) })
		}
		all.Wait()
		took := time.Since(began)
		stop()
		fig := apptest.NewTable("%d clients that write as soon as an answer has ended, %.0f turns/s (%s)", nextClients, float64(w.done["message"])/took.Seconds(), t.Name())
		for _, what := range slices.Sorted(maps.Keys(w.done)) {
			fig.AddRow(what, w.done[what])
		}
		fig.AddRow("refused", fmt.Sprint(w.refused))
		fig.Log(t)
		for what := range w.refused { // forks have places
			if what != "fork quota_exceeded" {
				t.Errorf("got %v, want no other refusals than of forks", w.refused)
			}
		}
	})
}

// nextWorld is what the clients share.
type nextWorld struct {
	client *client.Client

	mu      sync.Mutex
	done    map[string]int // guarded by mu
	refused map[string]int // by what was wanted and the code; guarded by mu
}

// count counts an operation, and why it was refused.
func (w *nextWorld) count(t *testing.T, what string, err error) {
	var p *client.ProblemError
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.done[what]++
	case errors.As(err, &p) && (p.Status == http.StatusConflict || p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable):
		if w.refused[what+" "+p.Code]++; w.refused[what+" "+p.Code] == 1 {
			t.Logf("%s: %v", what, err)
		}
	default:
		t.Errorf("%s: %v", what, err)
	}
}

// talk has the turns of one session. Every 16th is followed by other writes to the session.
func (w *nextWorld) talk(t *testing.T, id core.SessionID, first, turns int) {
	ctx := t.Context()
	for n := range turns {
		question, answer, err := w.send(ctx, id, fmt.Sprintf("Question %d: what of it?", n))
		w.count(t, "message", err)
		switch (n + first) % 64 {
		case 0:
			_, err := client.Call(ctx, w.client, ops.RegenerateMessage, core.Regenerate{SessionID: id, MessageID: answer})
			w.count(t, "new answer", err)
		case 16:
			_, err := client.Call(ctx, w.client, ops.ForkSession, core.ForkSession{SessionID: id})
			w.count(t, "fork", err)
		case 32:
			_, err := client.Call(ctx, w.client, ops.SendMessage, ops.NewMessage{InSession: ops.InSession{SessionID: id}, Run: new(false), Role: core.RoleUser, Content: "By the way."})
			w.count(t, "note", err)
		case 48:
			_, err := client.Call(ctx, w.client, ops.EditMessage, ops.EditedMessage{NewMessage: ops.NewMessage{InSession: ops.InSession{SessionID: id}, Content: fmt.Sprintf("Question %d, revised", n), Run: new(false)}, MessageID: question})
			w.count(t, "revision", err)
		}
	}
}

// send sends a message and returns at the event that ends its run; the end of the response is not
// waited for.
func (w *nextWorld) send(ctx context.Context, id core.SessionID, text string) (question, answer core.MessageID, err error) {
	for e, err := range apptest.Send(ctx, w.client, core.SendMessage{SessionID: id, Content: text}) {
		if err != nil {
			return "", "", err
		}
		if d, ok := e.Data.(core.MessageData); ok && d.Message.Role == core.RoleUser {
			question = d.Message.ID
		} else if ok {
			answer = d.Message.ID
		}
		switch {
		case e.Type == core.EventRunSucceeded:
			return question, answer, nil
		case e.Type.EndsRun():
			return "", "", errors.New(string(e.Type))
		}
	}
	return "", "", io.ErrUnexpectedEOF
}

// startLoad imports histories into other sessions and searches, until stop is called.
func (w *nextWorld) startLoad(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	id := apptest.NewSession(t, w.client, ops.NewSession{})
	all.Go(func() {
		for ctx.Err() == nil {
			_, err := w.client.ImportMessages(ctx, core.ImportMessages{SessionID: id, Body: strings.NewReader(history(400)), Format: core.ImportLines})
			if ctx.Err() == nil {
				w.count(t, "import", err)
			}
		}
	})
	all.Go(func() {
		for ctx.Err() == nil {
			_, _ = client.Call(ctx, w.client, ops.Search, core.SearchQuery{Text: "question"}) // it may take too long: it is only load
		}
	})
	return func() {
		cancel()
		all.Wait()
	}
}
