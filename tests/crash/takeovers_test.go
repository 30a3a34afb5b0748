package crash_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
	"bobbin/tests/seed"
)

// promised is after how long a killed replica's run goes on elsewhere, if nothing else is broken.
const promised = 5 * time.Second

// TestKilledReplicasStreamGoesOn: the stream of a replica that is killed goes on at another one, whenever its
// lease would expire.
func TestKilledReplicasStreamGoesOn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g := newGrace(t, place{den.Temp(t), dbtest.PostgresURL(t)}, "30s")
	other := newBobbin(t, place{den.Temp(t), g.place.database}, g.model)
	other.start(t)
	run := must.Get(apptest.SendAsync(ctx, g.client(t), core.SendMessage{SessionID: g.session, Content: "Are you there?"}))(t)
	<-g.half
	d := g.place.open(t)
	g.Kill()
	killed := time.Now()
	must.Do(t, d.Gorm.Exec("UPDATE runs SET lease_until = lease_until + interval '1 hour'").Error)
	must.Do(t, d.Close())
	g.release()
	end := apptest.ReadTurn(t, other.client(t).WatchRun(ctx, run.ID, core.Cursor{}))
	if end.Run.Status != core.RunSucceeded || end.Run.Attempt != 2 {
		t.Errorf("got the run %s at attempt %d, want it answered by the second one", end.Run.Status, end.Run.Attempt)
	}
	took := time.Since(killed)
	t.Logf("answered %s after the kill", took)
	if seed.IsChosen() && took > promised {
		t.Errorf("want it within %s", promised)
	}
}

// takeovers measures how long the runs of a killed replica stand still.
type takeovers struct {
	db *gorm.DB

	mu      sync.Mutex
	orphans map[core.RunID]orphan // guarded by mu
	own     []time.Duration       // until the killed replica, started again, went on; guarded by mu
	others  []time.Duration       // until another one did; guarded by mu
}

// orphan is a run whose replica was killed.
type orphan struct {
	replica string
	attempt int
	killed  time.Time
}

// lookTime bounds a look into the database, which may be away.
const lookTime = 2 * time.Second

// running returns the runs that somebody executes; false if the database is away.
func (o *takeovers) running(ctx context.Context) ([]models.Run, bool) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var rows []models.Run
	err := o.db.WithContext(ctx).Select("id", "status", "attempt", "lease_owner").Where("status = 'running'").Find(&rows).Error
	return rows, err == nil
}

// workTime is how long a killer waits for a replica to have work.
const workTime = 2 * time.Second

// killed kills a replica as soon as it has work, and remembers what it leaves behind.
func (o *takeovers) killed(ctx context.Context, name string, kill func() bool) {
	o.awaitWork(ctx, name)
	if !kill() {
		return
	}
	at := time.Now()
	rows, ok := o.running(ctx)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range rows {
		if core.WorkersOf(r.LeaseOwner) == name+"/" {
			o.orphans[core.RunID(r.ID)] = orphan{replica: name, attempt: r.Attempt, killed: at}
		}
	}
}

// awaitWork waits until the replica executes a run, or for workTime.
func (o *takeovers) awaitWork(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, workTime)
	defer cancel()
	for {
		rows, _ := o.running(ctx)
		for _, r := range rows {
			if core.WorkersOf(r.LeaseOwner) == name+"/" {
				return
			}
		}
		if !process.Pause(ctx, 20*time.Millisecond) {
			return
		}
	}
}

// watch looks for runs that go on, until ctx ends.
func (o *takeovers) watch(ctx context.Context) {
	for process.Pause(ctx, 200*time.Millisecond) {
		if o.left() == 0 {
			continue
		}
		if rows, ok := o.running(ctx); ok {
			o.sort(rows)
		}
	}
}

// left counts the runs that stand still.
func (o *takeovers) left() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.orphans)
}

// sort takes out the runs that have gone on.
func (o *takeovers) sort(rows []models.Run) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := map[core.RunID]models.Run{}
	for _, r := range rows {
		now[core.RunID(r.ID)] = r
	}
	for id, was := range o.orphans {
		r, running := now[id]
		switch {
		case running && r.Attempt == was.attempt:
			continue
		case running && core.WorkersOf(r.LeaseOwner) == was.replica+"/":
			o.own = append(o.own, time.Since(was.killed))
		case running:
			o.others = append(o.others, time.Since(was.killed))
		}
		delete(o.orphans, id) // one that has ended went on in between
	}
}

// late counts the times that are longer than is promised.
func late(times []time.Duration) (n int) {
	for _, t := range times {
		if t > promised {
			n++
		}
	}
	return n
}

// TestKilledAtRandomMoments: people talk through one Bobbin on either database, with tools, queues,
// interrupts and summaries, while it is killed again and again.
func TestKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	seed.SkipInCI(t)
	eachPlace(t, func(t *testing.T, p place) {
		s := settings{sessions: 5, kills: seed.Setting("BOBBIN_CRASH_KILLS", 4), place: p} // make show-crash has 200
		w := newWorld(t, s, func(w *world) {
			w.replicas = []*replica{newReplica(t, "alone", p.dataDir, w.model.URL, "database: {url: \""+p.database+"\"}\n")}
		})
		w.play(w.killAgain)
	})
}

// longestDelay is the time between what the killer waits for and the kill.
const longestDelay = 150 * time.Millisecond

// killAgain kills the only replica again and again, each time soon after its model has come to a
// point: steps take a few milliseconds. Now and then it is killed while it starts, too.
func (w *world) killAgain(ctx context.Context) {
	draw, r := dice(-1), w.replicas[0]
	points := []provider.Point{provider.PointPrompt, provider.PointStream, provider.PointTool, provider.PointSummary, provider.PointEnd, provider.PointEnd}
	for n := 0; n < w.kills && !w.t.Failed(); n++ { // more kills would only bury the first fault
		w.spare(ctx)
		w.model.await(ctx, points[draw.IntN(len(points))])
		x := draw.Float64()
		delay := time.Duration(x * x * x * float64(longestDelay))
		process.Pause(ctx, delay)
		r.Kill()
		if draw.IntN(12) == 0 {
			must.Do(w.t, r.Launch())
			process.Pause(ctx, delay)
			r.Kill()
		}
		began := time.Now()
		must.Do(w.t, r.start(ctx))
		w.restarts = append(w.restarts, time.Since(began))
	}
}

// spare waits until no run is at work that has two deaths: one with three executes alone, and one
// with four fails.
func (w *world) spare(ctx context.Context) {
	d := w.place.open(w.t)
	defer func() { _ = d.Close() }() // only read
	process.Await(w.t, "the end of runs that outlived two kills", func() (none bool) {
		var n int64
		must.Do(w.t, d.Gorm.WithContext(ctx).Model(&models.Run{}).Where("status = 'running' AND deaths >= 2").Count(&n).Error)
		return n == 0
	})
}
