package crash_test

import (
	"context"
	"testing"
	"time"

	"bobbin/app/db/models"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
	"bobbin/tests/seed"
)

// TestKilledAtRandomMoments: people talk through one Bobbin on either database, with tools, queues,
// interrupts and summaries, while it is killed again and again.
func TestKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	seed.SkipInCI(t)
	eachPlace(t, func(t *testing.T, p place) {
		s := settings{sessions: 5, kills: environmentInt(t, "BOBBIN_CRASH_KILLS", 4), place: p} // make show-crash has 200
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
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for n := int64(1); ; {
		must.Do(w.t, d.Gorm.WithContext(ctx).Model(&models.Run{}).Where("status = 'running' AND deaths >= 2").Count(&n).Error)
		if n == 0 {
			return
		}
		if !process.Pause(ctx, 5*time.Millisecond) {
			w.t.Fatalf("%d runs that outlived two kills do not end", n)
		}
	}
}
