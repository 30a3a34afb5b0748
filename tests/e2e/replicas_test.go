package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// withCluster joins the house to the replicas at the peers.
func withCluster(addr string, peers ...string) apptest.Setting {
	return func(c *config.Config) {
		c.NATS = config.NATS{ClusterAddr: addr, Peers: peers, Secret: config.NewSecret("hush-hush-hush-hush")}
	}
}

// newReplicas starts two houses on one PostgreSQL that are joined by their own cluster.
func newReplicas(t *testing.T, p *provider.Server) (a, b *apptest.Bobbin) {
	t.Helper()
	addr := process.FreeAddress(t)
	url := dbtest.PostgresURL(t)
	a = apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p), apptest.WithGrace(time.Millisecond), withCluster(addr))
	b = apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p), apptest.WithGrace(time.Millisecond), withCluster("127.0.0.1:0", addr))
	if said := b.App.Joined(); !strings.Contains(said, addr) {
		t.Errorf("the start-up lines say %q, want that it looks for %s", said, addr)
	}
	return a, b
}

// log is what a watcher got of a run.
type runLog struct {
	t      *testing.T
	seen   int64                     // number of the last durable event
	text   map[core.MessageID]string // live
	final  map[core.MessageID]string // as the message came
	gone   map[core.MessageID]bool   // taken back
	ended  core.EventType
	events int
}

func newRunLog(t *testing.T) *runLog {
	return &runLog{t: t, text: map[core.MessageID]string{}, final: map[core.MessageID]string{}, gone: map[core.MessageID]bool{}}
}

// take checks an event: numbers without a gap, texts without a gap or a repetition.
func (l *runLog) take(e core.Event) {
	l.t.Helper()
	l.events++
	if e.Seq > 0 {
		if e.Seq <= l.seen {
			l.t.Errorf("event %d came after %d", e.Seq, l.seen)
		}
		l.seen = e.Seq
	}
	switch e.Type {
	case core.EventMessageDelta:
		d := apptest.EventData[core.DeltaData](l.t, e)
		if d.OffsetUTF16 != core.UTF16Len(l.text[d.MessageID]) {
			l.t.Errorf("text at %d after %d", d.OffsetUTF16, core.UTF16Len(l.text[d.MessageID]))
		}
		l.text[d.MessageID] += d.Text
	case core.EventMessageCreated:
		d := apptest.EventData[core.MessageData](l.t, e)
		if d.Message.Role == core.RoleAssistant {
			l.final[d.Message.ID] = d.Message.Content
		}
	case core.EventMessageDiscarded:
		d := apptest.EventData[core.DiscardedData](l.t, e)
		l.gone[d.MessageID] = true
	case core.EventRunSucceeded, core.EventRunCanceled, core.EventRunFailed:
		l.ended = e.Type
	}
}

// follow watches the run from an event on, until its end or until enough says so.
func (l *runLog) follow(ctx context.Context, c *client.Client, run core.RunID, enough func() bool) {
	l.t.Helper()
	for e, err := range c.WatchRun(ctx, run, core.Cursor{After: l.seen}) {
		must.Do(l.t, err)
		l.take(e)
		if enough() {
			return
		}
	}
}

// saysSomething reports whether there is live text.
func (l *runLog) saysSomething() bool { return len(l.text) > 0 }

func never() bool { return false }

// held sends a message at the house whose answer is held in the middle.
func held(t *testing.T, h *apptest.Bobbin, g *gate) (core.SessionID, core.Run) {
	t.Helper()
	session := must.Get(client.Call(t.Context(), h, ops.CreateSession, ops.NewSession{}))(t)
	run := must.Get(h.SendAsync(t.Context(), core.SendMessage{SessionID: session.ID, Content: "hold this one"}))(t)
	<-g.arrived
	return session.ID, run
}

// TestReplicaShowsTheAnswerOfAnother: sent at one, watched at the other: the text so
// far, the rest as it comes, the same events, also after a reconnect to the other one
// with the last id; and a wait there truly waits.
func TestReplicaShowsTheAnswerOfAnother(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, g := newHolding(t)
	a, b := newReplicas(t, p)
	_, run := held(t, a, g)
	there, here := newRunLog(t), newRunLog(t)
	there.follow(ctx, b.Client, run.ID, there.saysSomething) // in the middle of the answer
	here.follow(ctx, a.Client, run.ID, here.saysSomething)
	moved := newRunLog(t) // with Last-Event-ID from a to b
	moved.seen = here.seen
	g.open()
	there.seen, there.text = 0, map[core.MessageID]string{}
	there.follow(ctx, b.Client, run.ID, never)
	moved.follow(ctx, b.Client, run.ID, never)
	for name, l := range map[string]*runLog{"there": there, "moved": moved} {
		if l.ended != core.EventRunSucceeded || len(l.final) != 1 {
			t.Errorf("%s: got end %q and %d answers, want one that succeeded", name, l.ended, len(l.final))
		}
		for id, text := range l.text {
			if !strings.HasPrefix(l.final[id], text) {
				t.Errorf("%s: live text %q is not the beginning of %q", name, text, l.final[id])
			}
		}
	}
	compare.Equal(t, "got.Status", core.RunSucceeded, must.Get(client.Call(ctx, b, ops.GetRun, ops.InRun{RunID: run.ID}))(t).Status)
}

// TestReplicaCancelsTheRunOfAnother: the cancel reaches the process that executes, and
// what was said is kept.
func TestReplicaCancelsTheRunOfAnother(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, g := newHolding(t)
	a, b := newReplicas(t, p)
	_, run := held(t, a, g)
	l := newRunLog(t)
	l.follow(ctx, b.Client, run.ID, l.saysSomething)
	got, err := client.Call(ctx, b, ops.CancelRun, ops.Cancel{InRun: ops.InRun{RunID: run.ID}, Wait: true})
	if err != nil || got.Status != core.RunCanceled || got.AnswerID == "" {
		t.Fatalf("got run %s with answer %q, %v, want it canceled and the answer so far kept", got.Status, got.AnswerID, err)
	}
	l.follow(ctx, b.Client, run.ID, never)
	if l.ended != core.EventRunCanceled || l.final[got.AnswerID] != l.text[got.AnswerID] || l.final[got.AnswerID] == "" {
		t.Errorf("got end %q and answer %q, want %q", l.ended, l.final[got.AnswerID], l.text[got.AnswerID])
	}
}

// TestReplicaTakesOver: what a process that stops had begun, another ends; the text of
// the lost attempt is taken back, and a wait at the other sees the end.
func TestReplicaTakesOver(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, g := newHolding(t)
	a, b := newReplicas(t, p)
	_, run := held(t, a, g)
	l := newRunLog(t)
	l.follow(ctx, b.Client, run.ID, l.saysSomething)
	a.Stop()
	g.open()
	l.follow(ctx, b.Client, run.ID, never)
	if l.ended != core.EventRunSucceeded || len(l.gone) != 1 || len(l.final) != 1 {
		t.Errorf("got end %q, %d texts taken back and %d answers, want one each", l.ended, len(l.gone), len(l.final))
	}
	for id := range l.gone {
		compare.Equal(t, fmt.Sprintf("message %s is taken back and there", id), "", l.final[id])
	}
	got, err := client.Call(ctx, b, ops.GetRun, ops.InRun{RunID: run.ID})
	if err != nil || got.Attempt != 2 {
		t.Errorf("got attempt %d, %v, want the second", got.Attempt, err)
	}
	if _, err := client.Call(ctx, b, ops.CancelRun, ops.Cancel{InRun: ops.InRun{RunID: core.NewID[core.RunID]()}}); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("got %v, want no such run", err)
	}
}

// TestTwins: two processes with one replica's name on one database. The second one says
// so, and does not take for its own what the first is at; each does its work alone.
func TestTwins(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	p, g := newHolding(t)
	named := func(c *config.Config) { c.Replica.Name = "twin" }
	url := dbtest.PostgresURL(t)
	a := apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p), named)
	_, run := held(t, a, g)
	b := apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p), named)
	const warning = "two processes have the same replica name"
	if !strings.Contains(b.Log.String(), warning) || strings.Contains(a.Log.String(), warning) {
		t.Errorf("want the second one to say that it has the first one's name:\n%s", b.Log)
	}
	other := apptest.SendMessage(t, b.Client, core.SendMessage{SessionID: apptest.NewSession(t, b.Client, ops.NewSession{}), Content: "and you?"})
	g.open()
	l := newRunLog(t)
	l.follow(ctx, a.Client, run.ID, never)
	got, err := client.Call(ctx, b, ops.GetRun, ops.InRun{RunID: run.ID})
	if err != nil || got.Status != core.RunSucceeded || got.Attempt != 1 || other.Run.Attempt != 1 {
		t.Errorf("got %s at attempt %d, %v, want one attempt of each run", got.Status, got.Attempt, err)
	}
	a.Stop()
	b.Restart()
	if strings.Count(b.Log.String(), warning) != 1 {
		t.Errorf("a name that is free again was not taken without a word:\n%s", b.Log)
	}
}
