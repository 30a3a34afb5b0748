package e2e_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// A conversation of so many turns; a summary is finished only when some turns have gone by.
const (
	turnsInAll    = 45
	turnsBeside   = 3
	windowBeside  = 16_384
	longQuestions = 14 // sentences; the answer repeats them
)

// A summary is prepared while the conversation goes on and put to use when
// a trigger is crossed. No turn waits for the summarizer, and nothing that it made is
// thrown away.
func TestBackground(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		b := newBeside(t, url)
		b.check(b.talk())
	})
}

// beside is a house whose summaries are written by a slow model of another provider.
type beside struct {
	*apptest.Bobbin
	t      *testing.T
	model  *provider.Server
	writer *provider.Server

	mu   sync.Mutex
	gone int           // turns; guarded by mu
	next chan struct{} // closed when another one is gone; guarded by mu
	over bool          // the conversation; guarded by mu
}

func newBeside(t *testing.T, url string) *beside {
	t.Helper()
	b := &beside{t: t, next: make(chan struct{})}
	b.model = apptest.NewProvider(t, provider.Options{Window: windowBeside})
	b.writer = apptest.NewProvider(t, provider.Options{At: func(at provider.Point, _ provider.Asked) {
		if at == provider.PointSummary {
			b.hold()
		}
	}})
	b.Bobbin = apptest.New(t, url, apptest.WithModel("house", windowBeside, 1024, b.model), apptest.WithModel("writer", 131_072, 4096, b.writer),
		apptest.WithAgent("keeper", "name: keeper\nsystem_prompt: You keep notes.\ncontext:\n  policy: window\n  timing: background\n  summary_model: writer\n"),
		func(c *config.Config) { c.Limits.SummaryTime = 5 * time.Second })
	t.Cleanup(b.end)
	return b
}

// hold keeps a summary back until so many turns have gone by.
func (b *beside) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for until := b.gone + turnsBeside; b.gone < until && !b.over; {
		next := b.next
		b.mu.Unlock()
		<-next
		b.mu.Lock()
	}
}

// pass says that a turn has gone by; end, that no more come.
func (b *beside) pass() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone++
	close(b.next)
	b.next = make(chan struct{})
}

func (b *beside) end() {
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
	b.pass()
}

// talk has a conversation and returns its session.
func (b *beside) talk() core.SessionID {
	b.t.Helper()
	id := apptest.NewSession(b.t, b.Client, core.Session{Agent: "keeper"})
	words := apptest.NewWriter(1)
	for n := range turnsInAll {
		question := fmt.Sprintf("Turn %d. %s", n, words.Sentences(longQuestions))
		got := apptest.SendMessage(b.t, b.Client, core.SendMessage{SessionID: id, Content: question})
		if got.Answer.Content != "answer to: "+question {
			b.t.Fatalf("turn %d: got the answer %.60q", n, got.Answer.Content)
		}
		for _, e := range got.Events {
			d := core.ContextData{}
			if strings.HasPrefix(string(e.Type), "context.") {
				d = apptest.EventData[core.ContextData](b.t, e)
			}
			if e.Type == core.EventContextStarted && !d.Ahead || e.Type == core.EventContextFailed || e.Type == core.EventContextSkipped {
				b.t.Errorf("turn %d: got %s %+v, want a turn that makes no summary", n, e.Type, d)
			}
		}
		b.pass()
	}
	return id
}

// check wants summaries that were made by the model, ahead, and put to use; what is
// ready at the end may still be.
func (b *beside) check(id core.SessionID) {
	b.t.Helper()
	s := session(b.t, b.Client, id)
	if s.SummaryCount < 2 {
		b.t.Errorf("got %d summaries in use, want several: the test shows nothing", s.SummaryCount)
	}
	page, err := b.Summaries(b.t.Context(), id, core.PageQuery{Limit: core.MaxPageLimit})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, v := range page.Items {
		if v.Note != "" || v.Model != "writer" {
			b.t.Errorf("version %d was made by %q (%s), want the model's", v.Version, v.Model, v.Note)
		}
		if v.State == core.SummaryDropped && v.ActivatedAt == nil {
			b.t.Errorf("version %d was made and never used", v.Version)
		}
	}
	contextOf(b.t, b.Client, id)
	apptest.ListMessages(b.t, b.Client, id)
}
