package e2e_test

import (
	"fmt"
	"slices"
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

// pace is a conversation of so many turns, and how slow its models are.
type pace struct {
	turns, window int
	sentences     int           // of a question; the answer repeats it
	answer, write time.Duration // of an answer, and of a summary
	turnsBeside   int           // that go by while a summary is made: it is not finished before
}

// hurried has a summarizer that is finished only when the conversation has gone on;
// leisurely is a conversation as people have them, if they type fast.
var (
	hurried   = pace{turns: 45, window: 16_384, sentences: 14, turnsBeside: 3}
	leisurely = pace{turns: 300, window: 131_072, sentences: 36, answer: 200 * time.Millisecond, write: 3 * time.Second}
)

// A summary is prepared while the conversation goes on and put to use when
// a trigger is crossed. No turn waits for the summarizer, and nothing that it made is
// thrown away (§ 10, row 25). With BOBBIN_TEST_LONG=1 a summary takes three seconds, and
// the figures say what a turn waits for.
func TestShowBackground(t *testing.T) {
	t.Parallel()
	p := hurried
	if apptest.IsLong() {
		p = leisurely
	}
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		if p.write > 0 { // one after the other: they would measure each other
			alone.Lock()
			defer alone.Unlock()
		}
		b := newBeside(t, url, p)
		with := b.talk("keeper")
		b.check(with)
		if apptest.IsLong() {
			b.report(with, b.talk("plain"))
		}
	})
}

// alone is held by whoever measures.
var alone sync.Mutex

// beside is a house whose summaries are written by a slow model of another provider.
type beside struct {
	*apptest.Bobbin
	t      *testing.T
	pace   pace
	model  *provider.Server
	writer *provider.Server

	mu   sync.Mutex
	gone int           // turns; guarded by mu
	next chan struct{} // closed when another one is gone; guarded by mu
	over bool          // the conversation; guarded by mu
}

// talkBeside is a conversation and what its turns took.
type talkBeside struct {
	id   core.SessionID
	own  []time.Duration // of each turn, without the time in the model's handler
	made []core.Event    // context.completed
}

func newBeside(t *testing.T, url string, p pace) *beside {
	t.Helper()
	b := &beside{t: t, pace: p, next: make(chan struct{})}
	b.model = apptest.NewProvider(t, provider.Options{Window: p.window, Hold: func(string) { <-time.After(p.answer) }})
	b.writer = apptest.NewProvider(t, provider.Options{At: func(at provider.Point, _ provider.Asked) {
		if at == provider.PointSummary {
			b.hold()
		}
	}})
	agent := "name: %s\nsystem_prompt: You keep notes.\ncontext:\n  policy: %s\n  summary_model: writer\n"
	b.Bobbin = apptest.New(t, url, apptest.WithModel("house", p.window, 1024, b.model), apptest.WithModel("writer", 131_072, 4096, b.writer),
		apptest.WithAgent("keeper", fmt.Sprintf(agent, "keeper", "window\n  timing: background")), apptest.WithAgent("plain", fmt.Sprintf(agent, "plain", "off")),
		func(c *config.Config) { c.Limits.SummaryTime = 5 * time.Second })
	t.Cleanup(b.end)
	return b
}

// hold keeps a summary back: for its time, and until so many turns have gone by.
func (b *beside) hold() {
	<-time.After(b.pace.write)
	b.mu.Lock()
	defer b.mu.Unlock()
	for until := b.gone + b.pace.turnsBeside; b.gone < until && !b.over; {
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

// talk has a conversation with the agent.
func (b *beside) talk(agent string) talkBeside {
	b.t.Helper()
	k := talkBeside{id: apptest.NewSession(b.t, b.Client, core.Session{Agent: agent})}
	words := apptest.NewWriter(1)
	for n := range b.pace.turns {
		question := fmt.Sprintf("Turn %d. %s", n, words.Sentences(b.pace.sentences))
		busy, start := b.model.Busy(), time.Now()
		got := apptest.SendMessage(b.t, b.Client, core.SendMessage{SessionID: k.id, Content: question})
		k.own = append(k.own, time.Since(start)-(b.model.Busy()-busy))
		if got.Answer.Content != "answer to: "+question {
			b.t.Fatalf("turn %d: got the answer %.60q", n, got.Answer.Content)
		}
		for _, e := range got.Events {
			d := core.ContextData{}
			if strings.HasPrefix(string(e.Type), "context.") {
				d = apptest.EventData[core.ContextData](b.t, e)
			}
			switch {
			case e.Type == core.EventContextStarted && !d.Ahead, e.Type == core.EventContextFailed, e.Type == core.EventContextSkipped:
				b.t.Errorf("turn %d: got %s %+v, want a turn that makes no summary", n, e.Type, d)
			case e.Type == core.EventContextCompleted:
				k.made = append(k.made, e)
			}
		}
		b.pass()
	}
	return k
}

// check wants summaries that were made by the model, ahead, and put to use; what is
// ready at the end may still be.
func (b *beside) check(k talkBeside) {
	b.t.Helper()
	s := session(b.t, b.Client, k.id)
	if s.SummaryCount < 2 {
		b.t.Errorf("got %d summaries in use, want several: the test shows nothing", s.SummaryCount)
	}
	page, err := b.Summaries(b.t.Context(), k.id, core.PageQuery{Limit: core.MaxPageLimit})
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
	contextOf(b.t, b.Client, k.id)
	apptest.ListMessages(b.t, b.Client, k.id)
}

// report prints the figures.
func (b *beside) report(with, without talkBeside) {
	b.t.Helper()
	var added []time.Duration
	for i := range with.own {
		added = append(added, with.own[i]-without.own[i])
	}
	s := session(b.t, b.Client, with.id)
	fig := apptest.NewTable("%d turns beside a summarizer that takes %s and %d turns (%s)", b.pace.turns, b.pace.write, b.pace.turnsBeside, b.t.Name())
	fig.AddRow("summaries put to use", s.SummaryCount, fmt.Sprintf("%d calls of the summarizer, no turn made one", b.writer.Summaries()))
	fig.AddRow("  of them within a turn, without a model call", len(with.made), "the others after one")
	fig.AddRow("Bobbin's own time of a turn", "p50", "p99", "max")
	for _, r := range []struct {
		name string
		took []time.Duration
	}{{"with summaries", with.own}, {"without", without.own}, {"added, turn by turn", added}} {
		p50, p99, most := percentiles(r.took)
		fig.AddRow("  "+r.name, p50.Round(time.Microsecond), p99.Round(time.Microsecond), most.Round(time.Microsecond))
	}
	a50, a99, aMost := percentiles(with.own)
	b50, b99, bMost := percentiles(without.own)
	fig.AddRow("  added, percentile by percentile", (a50 - b50).Round(time.Microsecond), (a99 - b99).Round(time.Microsecond), (aMost - bMost).Round(time.Microsecond))
	fig.Log(b.t)
}

// percentiles returns the median, the 99th percentile and the largest.
func percentiles(took []time.Duration) (p50, p99, most time.Duration) {
	slices.Sort(took)
	n := len(took)
	return took[n/2], took[n*99/100], took[n-1]
}
