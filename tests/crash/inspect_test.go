package crash_test

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"gorm.io/gorm"

	"bobbin/app/db"
	"bobbin/tests/must"
	"bobbin/tests/records"
)

// inspect looks at what the killed process left behind, while nobody can tidy up.
func (c *chaos) inspect() {
	c.t.Helper()
	c.look(func(g *gorm.DB) {
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
