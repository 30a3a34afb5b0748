package e2e_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	operator "bobbin/app/ops"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
)

// withCluster joins the house to the replicas at the peers.
func withCluster(addr string, peers ...string) apptest.Setting {
	return func(c *config.Config) {
		c.NATS = config.NATS{ClusterAddr: addr, Peers: peers, Secret: config.NewSecret("hush-hush-hush-hush")}
	}
}

// newReplicas starts two houses on one PostgreSQL that are joined by their own cluster. The gate holds the answer of the
// run, which the first one executes.
func newReplicas(t *testing.T) (a, b *apptest.Bobbin, g *gate, run core.Run) {
	t.Helper()
	p, g := newHolding(t)
	addr := process.FreeAddress(t)
	url := dbtest.PostgresURL(t)
	a = apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p), apptest.WithGrace(time.Millisecond), withCluster(addr))
	b = apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p), apptest.WithGrace(time.Millisecond), withCluster("127.0.0.1:0", addr))
	compare.Contains(t, "the start-up lines", addr, b.App.Joined())
	_, run = held(t, a, g)
	return a, b, g, run
}

// readText follows the run until text of its answer comes, and returns that and the number of the last durable event.
func readText(ctx context.Context, t *testing.T, c *client.Client, run core.RunID) (text string, seen core.Cursor) {
	t.Helper()
	for e, err := range c.WatchRun(ctx, run, core.Cursor{}) {
		must.Do(t, err)
		seen.After = max(seen.After, e.Seq)
		if e.Type == core.EventMessageDelta {
			return apptest.EventData[core.DeltaData](t, e).Text, seen
		}
	}
	t.Fatal("no text of the answer came")
	return "", seen
}

// held sends a message at the house whose answer is held in the middle.
func held(t *testing.T, h *apptest.Bobbin, g *gate) (core.SessionID, core.Run) {
	t.Helper()
	id := apptest.NewSession(t, h.Client, ops.NewSession{})
	run := must.Get(apptest.SendAsync(t.Context(), h, core.SendMessage{SessionID: id, Content: "hold this one"}))(t)
	<-g.arrived
	return id, run
}

// TestReplicaShowsTheAnswerOfAnother: sent at one, watched at the other: the text so
// far, the rest as it comes, the same events, also after a reconnect to the other one
// with the last id; and a wait there truly waits.
func TestReplicaShowsTheAnswerOfAnother(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, b, g, run := newReplicas(t)
	there, _ := readText(ctx, t, b.Client, run.ID)
	_, seen := readText(ctx, t, a.Client, run.ID)
	g.open()
	for name, from := range map[string]core.Cursor{"there": {}, "moved with Last-Event-ID": seen} {
		got := apptest.ReadTurn(t, b.WatchRun(ctx, run.ID, from))
		if got.Run.Status != core.RunSucceeded || got.Answer.ID != got.Run.AnswerID || !strings.HasPrefix(got.Answer.Content, there) {
			t.Errorf("%s: got the run %s with the answer %q, want one that begins with %q", name, got.Run.Status, got.Answer.Content, there)
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
	_, b, _, run := newReplicas(t)
	text, seen := readText(ctx, t, b.Client, run.ID)
	got, err := client.Call(ctx, b, ops.CancelRun, ops.Cancel{InRun: ops.InRun{RunID: run.ID}, Wait: true})
	if err != nil || got.Status != core.RunCanceled || got.AnswerID == "" {
		t.Fatalf("got run %s with answer %q, %v, want it canceled and the answer so far kept", got.Status, got.AnswerID, err)
	}
	end := apptest.ReadTurn(t, b.WatchRun(ctx, run.ID, seen))
	if end.Run.Status != core.RunCanceled || end.Answer.ID != got.AnswerID || end.Answer.Content != text {
		t.Errorf("got the run %s with the answer %q, want it canceled with %q", end.Run.Status, end.Answer.Content, text)
	}
}

// TestReplicaTakesOver: what a process that stops had begun, another ends; the text of
// the lost attempt is taken back, and a wait at the other sees the end.
func TestReplicaTakesOver(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, b, g, run := newReplicas(t)
	_, seen := readText(ctx, t, b.Client, run.ID)
	a.Stop()
	g.open()
	end := apptest.ReadTurn(t, b.WatchRun(ctx, run.ID, seen))
	gone := slices.IndexFunc(end.Events, func(e core.Event) bool { return e.Type == core.EventMessageDiscarded })
	if end.Run.Status != core.RunSucceeded || gone < 0 || end.Answer.ID == apptest.EventData[core.DiscardedData](t, end.Events[gone]).MessageID {
		t.Errorf("got the run %s with the answer %s in %+v, want the first text taken back, and another answer", end.Run.Status, end.Answer.ID, end.Events)
	}
	compare.Equal(t, "attempt", 2, must.Get(client.Call(ctx, b, ops.GetRun, ops.InRun{RunID: run.ID}))(t).Attempt)
	compare.Error(t, "no such run", core.ErrNotFound, compare.ErrorOf(client.Call(ctx, b, ops.CancelRun, ops.Cancel{InRun: ops.InRun{RunID: core.NewID[core.RunID]()}})))
}

// TestTwins: two processes with one replica's name on one database. The second one says
// so, as doctor does, and does not take for its own what the first is at; each does its work alone.
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
	look := func() (found operator.Finding) {
		t.Helper()
		cfg := a.Config
		cfg.DataDir = t.TempDir() // another machine's
		withCluster("127.0.0.1:6222")(&cfg)
		for _, f := range operator.Doctor(t.Context(), operator.DoctorOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler)}).Findings {
			if f.Check == "replica" {
				found = f
			}
		}
		return found
	}
	if f := look(); f.Status != operator.VerdictWarn || !strings.Contains(f.Detail, "has been using it since") {
		t.Errorf("doctor on a name that a server has: got %+v, want a warning", f)
	}
	other := apptest.SendMessage(t, b.Client, core.SendMessage{SessionID: apptest.NewSession(t, b.Client, ops.NewSession{}), Content: "and you?"})
	g.open()
	apptest.ReadTurn(t, a.WatchRun(ctx, run.ID, core.Cursor{}))
	got, err := client.Call(ctx, b, ops.GetRun, ops.InRun{RunID: run.ID})
	if err != nil || got.Status != core.RunSucceeded || got.Attempt != 1 || other.Run.Attempt != 1 {
		t.Errorf("got %s at attempt %d, %v, want one attempt of each run", got.Status, got.Attempt, err)
	}
	a.Stop()
	b.Restart()
	compare.Equal(t, "warnings: a name that is free again is taken without a word", 1, strings.Count(b.Log.String(), warning))
	b.Stop()
	compare.Equal(t, "doctor on a name that nobody has", operator.VerdictOK, look().Status)
}
