package branches_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/llm"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/seed"
)

// Three processes over one database, 16 at once on one session whose
// prompt does not fit: one call of the summarizer, one version, and everybody goes on
// with it.
func TestRow16OneSummaryInThreeProcesses(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d, newFigures())
		w.agents = timings()
		w.rand = seed.Rand(t, 16)
		k := w.overfull("background")
		g := &gated{registry: registry{w}, open: make(chan struct{}), refused: map[string]bool{}}
		var keepers []*compaction.Compactor
		for _, name := range []string{"one", "two", "three"} {
			o := w.options
			o.Worker, o.Models = name, g
			o.Stores.Sessions = gatedSessions{w.sessions, name, g}
			keepers = append(keepers, compaction.New(o))
		}
		turn := w.turnOf(k)
		var versions [16]int
		var wg sync.WaitGroup
		for i := range versions {
			wg.Go(func() {
				got, d, err := keepers[i%len(keepers)].Fit(t.Context(), turn)
				if err != nil || d.Summarize != nil || d.Total > d.Budget.Usable {
					t.Errorf("goroutine %d: error %v, decision %+v, want a prompt that fits", i, err, d)
				}
				versions[i] = got.Session.SummaryVersion
			})
		}
		wg.Wait()
		for i, v := range versions {
			if v != 1 {
				t.Errorf("goroutine %d: got version %d, want the one", i, v)
			}
		}
		if s := w.session(k.id); g.calls.Load() != 1 || s.SummaryCount != 1 {
			t.Errorf("got %d summaries by %d calls, want one", s.SummaryCount, g.calls.Load())
		}
		w.check(k, "summarize")
	})
}

// overfull returns a conversation that does not fit its model any more.
func (w *world) overfull(agent string) *talk {
	w.t.Helper()
	made, err := w.chat.CreateSession(w.t.Context(), tenant, core.Session{Agent: agent, Title: "a talk"})
	if err != nil {
		w.t.Fatal(err)
	}
	k := newTalk(made.ID)
	w.talks = []*talk{k}
	for {
		w.append(k)
		w.learn(k)
		r, err := w.keeper.Report(w.t.Context(), tenant, k.id)
		if err != nil {
			w.t.Fatal(err)
		}
		if r.Planned > r.Usable {
			return k
		}
	}
}

// turnOf returns the turn of a question that is about to be answered.
func (w *world) turnOf(k *talk) compaction.Turn {
	w.t.Helper()
	s := w.session(k.id)
	history, err := w.messages.GetMessagesAfter(w.t.Context(), tenant, k.id, "")
	if err != nil {
		w.t.Fatal(err)
	}
	profile, err := w.options.LoadProfile(w.t.Context(), s, "")
	if err != nil {
		w.t.Fatal(err)
	}
	question := core.Message{ID: core.NewID[core.MessageID](), Role: core.RoleUser, Content: w.text(10)}
	question.TokenCount = w.counter.Message(question)
	return compaction.Turn{Session: s, Profile: profile, History: history, Run: []core.Message{question}}
}

// gated is a summarizer that is finished when two other processes have been refused.
type gated struct {
	registry
	calls atomic.Int64
	open  chan struct{}

	mu      sync.Mutex
	refused map[string]bool // processes; guarded by mu
}

// Get finds a model.
func (g *gated) Get(name string) (llm.Model, error) {
	m, err := g.registry.Get(name)
	if name != "writer" || err != nil {
		return m, err
	}
	return llm.Scripted(llm.Step{Repeat: true, From: func(req llm.Request) llm.Step {
		g.calls.Add(1)
		<-g.open
		return g.w.write(req)
	}}).WithInfo(m.Info()), nil
}

// refuse notes that a process was refused.
func (g *gated) refuse(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused[name] {
		return
	}
	if g.refused[name] = true; len(g.refused) == 2 {
		close(g.open)
	}
}

// gatedSessions are the sessions of one process.
type gatedSessions struct {
	*repositories.Sessions
	name string
	g    *gated
}

// LeaseSummary is Sessions.LeaseSummary.
func (s gatedSessions) LeaseSummary(ctx context.Context, in core.Tenant, id core.SessionID, holder string, d time.Duration) (core.LeaseResult, error) {
	got, err := s.Sessions.LeaseSummary(ctx, in, id, holder, d)
	if err == nil && !got.OK() {
		s.g.refuse(s.name)
	}
	return got, err
}

// slowly is a summarizer that is held in the middle of its first summary.
type slowly struct {
	registry
	begun, wake chan struct{}
}

// Get finds a model.
func (s slowly) Get(name string) (llm.Model, error) {
	m, err := s.registry.Get(name)
	if name != "writer" || err != nil {
		return m, err
	}
	return llm.Scripted(llm.Step{Repeat: true, From: func(req llm.Request) llm.Step {
		close(s.begun)
		<-s.wake
		return s.w.write(req)
	}}).WithInfo(m.Info()), nil
}

// A process hangs in the middle of a summary longer than its lease: another one makes the
// summary, and the late one is thrown away. Both go on with the one version.
func TestLateSummaryIsThrownAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.Postgres(t), newFigures())
	w.agents = timings()
	w.rand = seed.Rand(t, 17)
	k := w.overfull("background")
	held := slowly{registry: registry{w}, begun: make(chan struct{}), wake: make(chan struct{})}
	o := w.options
	o.Worker, o.Models = "slow/1", held
	slow := compaction.New(o)
	o = w.options
	o.Worker = "quick/1"
	quick := compaction.New(o)
	turn := w.turnOf(k)
	late := make(chan int, 1)
	go func() {
		got, _, err := slow.Fit(t.Context(), turn)
		if err != nil {
			t.Errorf("the slow process: %v", err)
		}
		late <- got.Session.SummaryVersion
	}()
	<-held.begun
	if err := w.db.Gorm.Exec("UPDATE sessions SET summary_lease_until = clock_timestamp() - interval '1 second'").Error; err != nil {
		t.Fatal(err)
	}
	if got, d, err := quick.Fit(t.Context(), turn); err != nil || got.Session.SummaryVersion != 1 || d.Total > d.Budget.Usable {
		t.Errorf("the quick process: got version %d, %v, want the first", got.Session.SummaryVersion, err)
	}
	close(held.wake)
	if got := <-late; got != 1 {
		t.Errorf("the slow process goes on with version %d, want the other one's", got)
	}
	if s := w.session(k.id); s.SummaryCount != 1 || s.SummaryVersion != 1 {
		t.Errorf("got %d summaries, version %d, want one", s.SummaryCount, s.SummaryVersion)
	}
	w.check(k, "summarize")
}
