package crash_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/models"
	"bobbin/tests/must"
	"bobbin/tests/records"
)

// state is how far a run is.
type state struct {
	status  core.RunStatus
	attempt int
	deaths  int
}

// attempts returns the state of every run.
func attempts(t *testing.T, g *gorm.DB) map[core.RunID]state {
	t.Helper()
	var rows []models.Run
	must.Do(t, g.WithContext(t.Context()).Select("id", "status", "attempt", "deaths").Find(&rows).Error)
	states := map[core.RunID]state{}
	for _, r := range rows {
		states[core.RunID(r.ID)] = state{core.RunStatus(r.Status), r.Attempt, r.Deaths}
	}
	return states
}

// leases checks who executes what: a restart takes over every run of the process
// before, once and before it lets anybody in, but for those with so many deaths that others
// may have to come first; while a process lives nobody takes its runs from it. So no run
// ever has to wait for a lease to pass.
type leases struct {
	cut   map[core.RunID]state // at the kill, nil = nobody looked
	given map[core.RunID]state // when the process let people in, nil = nobody looked
}

// forget is called when a process has died and nobody looks.
func (l *leases) forget() { l.cut, l.given = nil, nil }

// atKill looks at what a killed process left behind.
func (l *leases) atKill(t *testing.T, now map[core.RunID]state) {
	t.Helper()
	l.atEnd(t, now)
	l.cut, l.given = now, nil
}

// atEnd checks that the process kept its runs as long as it lived.
func (l *leases) atEnd(t *testing.T, now map[core.RunID]state) {
	t.Helper()
	if l.given == nil {
		return
	}
	for id, r := range now {
		given := l.given[id]
		if given.deaths > 0 && r.attempt == given.attempt+1 { // it had to wait
			continue
		}
		if want := given.attempt; r.attempt < want || r.attempt > max(want, 1) {
			t.Errorf("run %s is %s in attempt %d; it was in attempt %d, and its process was alive", id, r.status, r.attempt, want)
		}
	}
}

// atReady looks at the first moment in which a process lets people in.
func (l *leases) atReady(t *testing.T, now map[core.RunID]state) {
	t.Helper()
	l.given = now
	if l.cut == nil {
		return
	}
	for id, r := range now {
		before := l.cut[id]
		want := max(before.attempt, 1) // at most: it may be queued still
		if before.status == core.RunRunning {
			want = before.attempt + 1
		}
		if before.deaths > 0 && r.attempt == before.attempt { // suspected: it may have to wait
			continue
		}
		if r.attempt > want || r.attempt < want && r.status != core.RunQueued && r.status != core.RunCanceled {
			t.Errorf("run %s was %q in attempt %d at the kill, and is %s in attempt %d after the restart, want attempt %d",
				id, before.status, before.attempt, r.status, r.attempt, want)
		}
	}
}

// inspect looks at what the killed process left behind, while nobody can tidy up.
func (c *chaos) inspect() {
	c.t.Helper()
	c.look(func(g *gorm.DB) {
		c.leases.atKill(c.t, attempts(c.t, g))
		for n, id := range c.sessions {
			v := c.check(fmt.Sprintf("session %d (%s) after kill %d", n, id, c.kills), records.Record{})
			var err error
			if v.Session, v.Summaries, err = records.Summaries(c.t.Context(), g, id); err != nil {
				c.t.Fatal(err)
			}
			v.Versions()
			c.checkKept(v)
			heard := int(c.talk.feeds[id].version.Load())
			if heard > len(v.Summaries) {
				v.Errorf("its watcher was told of %d summaries, %d are there", heard, len(v.Summaries))
			}
		}
		c.found.inspections++
	})
}

// checkKept: a version that was once there stays as it is.
func (c *chaos) checkKept(v *records.Check) {
	kept := c.kept[v.Session.ID]
	if len(v.Summaries) < len(kept) {
		v.Errorf("there were %d summaries, %d are left", len(kept), len(v.Summaries))
	}
	for i, s := range v.Summaries {
		if i == len(kept) {
			kept = append(kept, s.Content)
		}
		if s.Content != kept[i] {
			v.Errorf("summary %d was %q and is %q", i+1, kept[i], s.Content)
		}
	}
	c.kept[v.Session.ID] = kept
	c.found.inspected += len(v.Summaries)
}

// inspectLeases looks at who has which runs now, if it is of use.
func (c *chaos) inspectLeases(looked bool) {
	c.t.Helper()
	d := c.place.open(c.t)
	defer func() { _ = d.Close() }() // only read
	if looked {
		c.leases.atReady(c.t, attempts(c.t, d.Gorm))
		return
	}
	c.leases.given = attempts(c.t, d.Gorm)
}

// look opens the database as the killed process left it, and closes it again: it
// must be the restart that finds it so, log and locks included.
func (c *chaos) look(f func(g *gorm.DB)) {
	c.t.Helper()
	d := c.place.open(c.t)
	defer func() { _ = d.Close() }() // only read
	var level sql.IsolationLevel
	if d.Dialect() == "postgres" {
		c.gone(d)
		level = sql.LevelRepeatableRead
	}
	err := d.Gorm.WithContext(c.t.Context()).Transaction(func(g *gorm.DB) error {
		f(g)
		return nil
	}, &sql.TxOptions{Isolation: level})
	must.Do(c.t, err)
}

// gone waits until PostgreSQL has noticed that the process is dead: what it had
// asked for last may still be done.
func (c *chaos) gone(d *db.DB) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	const others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
	for {
		var n int
		must.Do(c.t, d.Gorm.WithContext(ctx).Raw(others).Scan(&n).Error)
		if n == 0 {
			return
		}
		if !pause(ctx, time.Millisecond) {
			c.t.Fatalf("%d connections of the killed process are left", n)
		}
	}
}
