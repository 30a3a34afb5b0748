package fault_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/db/models"
	"bobbin/tests/must"
	"bobbin/tests/provider"
	"bobbin/tests/records"
	"bobbin/tests/seed"
)

// promised is after how long a killed replica's run goes on elsewhere.
const promised = 35 * time.Second

// slack is what a machine with too much to do may add to it.
const slack = 25 * time.Second

// TestTakeover: the replica that executes a run is killed in the middle of the answer.
// Another takes the run over, and whoever watches, there or elsewhere, sees one answer
// With nothing but the client's own reconnect.
// With BOBBIN_TEST_LONG=1 each replica is killed and stays away until its lease has passed;
// else one is, and is started again at once.
func TestTakeover(t *testing.T) {
	t.Parallel()
	seed.SkipInCI(t)
	long := os.Getenv("BOBBIN_TEST_LONG") != ""
	g := &gate{open: make(chan struct{}), reached: make(chan struct{}, 100)}
	p := must.Get(provider.New(provider.Options{Window: modelWindow, Hold: g.hold, Pieces: 4}))(t)
	t.Cleanup(p.Close)
	t.Cleanup(g.release)
	w := newWorld(t, settings{}, &model{Server: p})
	w.road.calm.Store(true)
	for _, r := range w.replicas {
		g.shut()
		newTakeover(w, g, r).play(!long)
		if !long {
			break
		}
		must.Do(t, r.start(t.Context()))
	}
	w.readLogs()
}

// gate holds answers in the middle.
type gate struct {
	mu      sync.Mutex
	open    chan struct{} // closed = answers go on; guarded by mu
	reached chan struct{} // gets one for each answer that is held
}

func (g *gate) hold(string) {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	g.reached <- struct{}{}
	<-open
}

// shut holds answers from now on.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open, g.reached = make(chan struct{}), make(chan struct{}, 100)
}

// release lets answers go on.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// takeover is a run whose replica is killed.
type takeover struct {
	*world

	gate    *gate
	killed  *replica
	session core.SessionID
}

func newTakeover(w *world, g *gate, r *replica) *takeover {
	w.t.Helper()
	s := must.Get(client.Call(w.t.Context(), traveler{road: w.road, only: r}.client(w.t), ops.CreateSession, ops.NewSession{}))(w.t)
	return &takeover{world: w, gate: g, killed: r, session: s.ID}
}

// sighting is what a watcher saw.
type sighting struct {
	half     chan struct{} // closed when text of the answer came
	back     time.Time     // when the text of the lost attempt was taken back
	end      time.Time     // when the run's end came
	answers  int
	finished core.EventType
}

// play kills the replica, and starts it again if that is wanted.
func (k *takeover) play(restart bool) {
	t := k.t
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	there := &sighting{half: make(chan struct{})}
	here := &sighting{half: make(chan struct{})}
	other := k.replicas[0]
	if other == k.killed {
		other = k.replicas[1]
	}
	var watching sync.WaitGroup
	watching.Go(func() { k.watch(ctx, there, traveler{road: k.road, only: other}, "via another") })
	watching.Go(func() { k.watch(ctx, here, traveler{road: k.road, first: k.killed}, "via the killed one") })
	run := must.Get(traveler{road: k.road, only: k.killed}.client(t).SendAsync(ctx, core.SendMessage{SessionID: k.session, Content: "Are you there?"}))(t)
	<-there.half
	<-here.half
	lease := k.lease(ctx, run.ID)
	k.killed.Kill()
	at := time.Now()
	k.gate.release()
	if restart {
		if err := k.killed.start(ctx); err != nil {
			t.Error(err)
		}
	}
	watching.Wait()
	k.check(ctx, run.ID, at, lease, map[string]*sighting{"another": there, k.killed.name: here})
}

// lease returns how long the run's lease still holds, by the database's clock.
func (k *takeover) lease(ctx context.Context, run core.RunID) (left time.Duration) {
	k.t.Helper()
	var row struct {
		LeaseOwner string
		Left       float64
	}
	err := k.database.WithContext(ctx).Model(&models.Run{}).
		Select("lease_owner, EXTRACT(EPOCH FROM lease_until - clock_timestamp()) AS left").Where("id = ?", string(run)).Scan(&row).Error
	if err != nil || core.WorkersOf(row.LeaseOwner) != k.killed.name+"/" {
		k.t.Fatalf("the run is leased to %q, %v, want %s", row.LeaseOwner, err, k.killed.name)
	}
	return time.Duration(row.Left * float64(time.Second))
}

// watch follows the session to the run's end, by one call of the client: it does nothing
// about a connection that breaks.
func (k *takeover) watch(ctx context.Context, s *sighting, v traveler, name string) {
	f := records.NewFeed(func(format string, args ...any) { k.t.Errorf(name+": "+format, args...) })
	half := sync.OnceFunc(func() { close(s.half) })
	defer half()
	for e, err := range v.client(k.t).WatchSession(ctx, k.session, core.Cursor{}) {
		if err != nil {
			k.t.Errorf("%s: the client gave up: %v", name, err)
			return
		}
		f.Take(e)
		switch e.Type {
		case core.EventMessageDelta:
			half()
		case core.EventMessageDiscarded:
			s.back = time.Now()
		case core.EventMessageCreated:
			if records.Decoded[core.MessageData](e).Message.Role == core.RoleAssistant {
				s.answers++
			}
		case core.EventRunSucceeded, core.EventRunFailed, core.EventRunCanceled:
			s.end, s.finished = time.Now(), e.Type
			return
		}
	}
}

// check wants one answer, by another replica, in time, and seen by both.
func (k *takeover) check(ctx context.Context, id core.RunID, at time.Time, lease time.Duration, seen map[string]*sighting) {
	t := k.t
	t.Helper()
	for name, s := range seen {
		if s.finished != core.EventRunSucceeded || s.answers != 1 || s.back.IsZero() {
			t.Errorf("watched via %s: got end %q, %d answers, half an answer taken back: %v, want one answer in place of the half one", name, s.finished, s.answers, !s.back.IsZero())
		}
		if late := s.back.Sub(at); late > promised+slack {
			t.Errorf("watched via %s: the run was taken over after %s, promised are %s", name, late, promised)
		}
	}
	run, err := client.Call(ctx, traveler{road: k.road}.client(t), ops.GetRun, ops.InRun{RunID: id})
	if err != nil || run.Status != core.RunSucceeded || run.Attempt != 2 {
		t.Errorf("got run %s in attempt %d, %v, want it answered in the second", run.Status, run.Attempt, err)
	}
	if lease > 30*time.Second {
		t.Errorf("the lease held %s more, with a sweep each 5 s more than the %s that are promised", lease, promised)
	}
}
