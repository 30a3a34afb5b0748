package crash_test

import (
	"context"
	"sync"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
	"bobbin/tests/process"
)

// promised is after how long a killed replica's run goes on elsewhere, if nothing else is broken.
const promised = 35 * time.Second

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
