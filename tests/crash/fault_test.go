package crash_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/db/models"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/process"
	"bobbin/tests/records"
	"bobbin/tests/seed"
)

// TestFaults: people talk through three replicas while everything around them breaks.
// In the end nothing is lost, nothing is doubled, and nothing stands still.
func TestFaults(t *testing.T) {
	t.Parallel()
	seed.SkipInCI(t)
	s := readSettings(t)
	t.Logf("BOBBIN_FAULT_TIME=%s BOBBIN_FAULT_SESSIONS=%d", s.time, s.sessions)
	w := newWorld(t, s, (*world).buildReplicas)
	w.play(func(ctx context.Context) { w.breaker.run(ctx, plan(dice(-1), s.time), s.time) })
}

// settings are what the variables of the environment say.
type settings struct {
	time     time.Duration // of the faults
	sessions int
	kills    int
	place    place  // of a single replica
	keep     string // folder for logs; empty = none
}

func readSettings(t *testing.T) settings {
	t.Helper()
	s := settings{time: 12 * time.Second, sessions: seed.Setting("BOBBIN_FAULT_SESSIONS", 10), keep: os.Getenv("BOBBIN_FAULT_KEEP")}
	var err error
	if text := os.Getenv("BOBBIN_FAULT_TIME"); text != "" {
		if s.time, err = time.ParseDuration(text); err != nil || s.time <= 0 {
			t.Fatalf("BOBBIN_FAULT_TIME is %q, want a time such as 30m", text)
		}
	}
	return s
}

// settle ends the faults, lets everybody finish, and waits until nothing is left to be
// done.
func (w *world) settle() {
	w.t.Helper()
	w.t.Logf("%s: the faults are over", w.clock())
	close(w.model.calm)
	w.road.calm.Store(true)
	close(w.talk.closed)
	w.talk.wait.Wait() // messages on their way are sent until they are accepted
	if w.database == nil {
		w.database = dbtest.Open(w.t, w.place.database).Gorm
	}
	w.t.Logf("%s: everybody has sent what was to be sent", w.clock())
	w.awaitRuns()
	w.t.Logf("%s: no run is open", w.clock())
	w.startAll() // who was left dead
}

// awaitRuns waits until all runs have ended.
func (w *world) awaitRuns() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for {
		var open []models.Run
		err := w.database.WithContext(ctx).Where("status NOT IN ('succeeded', 'failed', 'canceled')").Find(&open).Error
		if err == nil && len(open) == 0 {
			return
		}
		if !process.Pause(ctx, 50*time.Millisecond) {
			w.violate("%d runs do not end, %v", len(open), err)
			for _, r := range open {
				w.violate("stuck: run %s in session %s, %s, attempt %d, leased to %q until %v", r.ID, r.SessionID, r.Status, r.Attempt, r.LeaseOwner, r.LeaseUntil)
			}
			return
		}
	}
}

// findings are what the checks counted.
type findings struct {
	records.Found

	stuck, summaries, fallbacks         int
	feeds, whole, begun, events, gaveUp int
}

// verify checks every session, and that a next turn works in it.
func (w *world) verify() *findings {
	found := &findings{}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	var mu sync.Mutex // of found
	w.each(func(n int, id core.SessionID) {
		name := fmt.Sprintf("session %d (%s)", n, id)
		r, err := records.Load(ctx, w.database, id)
		if err != nil {
			w.violate("%s: %v", name, err)
			return
		}
		mu.Lock()
		c := &records.Check{Record: r, Found: &found.Found, Errorf: func(format string, args ...any) { w.violate(name+": "+format, args...) }}
		c.Canceled, c.Withdrawn = true, true
		c.Failed = func(run core.Run) bool { return run.Error != nil && strings.HasPrefix(run.Error.Code, "model_") }
		c.Whole()
		w.talk.mu.Lock()
		c.Sent(w.talk.sent)
		w.talk.mu.Unlock()
		found.summaries += len(r.Summaries)
		for _, s := range r.Summaries {
			if s.Note != "" {
				found.fallbacks++
			}
		}
		mu.Unlock()
		w.checkIndex(ctx, c)
		w.checkContext(ctx, c)
		if !w.nextTurn(ctx, name, id) {
			mu.Lock()
			found.stuck++
			mu.Unlock()
		}
	})
	var n int64 // each session was made once
	if err := w.database.WithContext(ctx).Model(&models.Session{}).Count(&n).Error; err != nil || n != int64(len(w.ids)) {
		w.violate("there are %d sessions (%v), %d were opened", n, err, len(w.ids))
	}
	return found
}

// checkIndex: every message is in the search index; a unique index says that it is there once.
func (w *world) checkIndex(ctx context.Context, c *records.Check) {
	id := c.Session.ID
	count := func(query string) (n int) {
		if err := w.database.WithContext(ctx).Raw(query, id).Scan(&n).Error; err != nil {
			c.Errorf("index: %v", err)
		}
		return n
	}
	for count("SELECT COUNT(*) FROM sessions WHERE id = ? AND indexed_seq < last_seq AND NOT temporary") > 0 {
		if !process.Pause(ctx, 20*time.Millisecond) {
			c.Errorf("is not indexed")
			return
		}
	}
	if n := count(`SELECT COUNT(*) FROM messages m WHERE m.session_id = ? AND m.deleted_at IS NULL AND m.content <> '' AND m.tool_name <> 'search_history'
		AND NOT EXISTS (SELECT 1 FROM search_entries e WHERE e.message_id = m.id)`); n > 0 {
		c.Errorf("%d messages are not in the search index", n)
	}
}

// checkContext: no message is lost to the prompt.
func (w *world) checkContext(ctx context.Context, c *records.Check) {
	report, err := client.Call(ctx, traveler{road: w.road}.client(w.t), ops.GetContext, ops.InSession{SessionID: c.Session.ID})
	if g := report.Coverage; err != nil || g.Lost != 0 || g.Messages != len(c.Messages) {
		c.Errorf("coverage: got %+v, %v, want %d messages, none lost", g, err, len(c.Messages))
	}
}

// each calls f for all sessions, some at a time.
func (w *world) each(f func(n int, id core.SessionID)) {
	var wait sync.WaitGroup
	places := make(chan struct{}, 4)
	for n, id := range w.ids {
		wait.Go(func() {
			places <- struct{}{}
			f(n, id)
			<-places
		})
	}
	wait.Wait()
}

// nextTurn reports whether the session goes on, and its watchers hear of it.
func (w *world) nextTurn(ctx context.Context, name string, id core.SessionID) bool {
	m := core.SendMessage{SessionID: id, Content: "next Is everything there?", ClientMessageID: "next"}
	a, err := apptest.SendAndWait(ctx, traveler{road: w.road}.client(w.t), m)
	if err != nil || a.Run.Status != core.RunSucceeded || a.Message == nil || !records.IsAnswer(a.Message.Content, m.Content) {
		w.violate("%s: the next turn: got run %+v, %v, want an answer", name, a.Run, err)
		return false
	}
	var row models.Session
	if err := w.database.WithContext(ctx).Select("id", "last_event_seq").Where("id = ?", string(id)).Take(&row).Error; err != nil {
		w.violate("%s: %v", name, err)
		return false
	}
	for _, f := range w.watchers {
		for f.session == id && f.seen() < row.LastEventSeq {
			if !process.Pause(ctx, 20*time.Millisecond) {
				w.violate("%s has come to event %d of %d", f.name, f.seen(), row.LastEventSeq)
				return false
			}
		}
	}
	return true
}

// verifyFeeds checks that the watchers were told of what is stored, and of nothing else.
// They have ended.
func (w *world) verifyFeeds(found *findings) {
	byID := map[core.SessionID][]*watcher{}
	for _, f := range w.watchers {
		byID[f.session] = append(byID[f.session], f)
		found.feeds++
		found.whole += f.feed.Whole
		found.begun += f.feed.Begun
		found.events += len(f.feed.Types)
		found.gaveUp += int(f.gaveUp.Load())
	}
	w.each(func(n int, id core.SessionID) {
		r, err := records.Load(w.t.Context(), w.database, id)
		if err != nil {
			w.violate("session %d: %v", n, err)
			return
		}
		for _, f := range byID[id] {
			f.feed.Compare(r)
		}
	})
}

// readLogs looks into the replicas' logs. They are stopped first.
func (w *world) readLogs() {
	if w.keep != "" {
		_ = os.MkdirAll(w.keep, 0o755) // a convenience
	}
	for _, r := range w.replicas {
		if err := r.Stop(patience); err != nil {
			w.violate("%s: %v", r.name, err)
		}
		bad, errors := r.readLog(w.keep)
		w.internal += errors
		for _, text := range bad {
			w.violate("%s: %s", r.name, text)
		}
	}
}

// report prints what was seen.
func (w *world) report(f *findings) {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format+"\n", args...) }
	k, o := w.talk, w.takeovers
	p50own, mostOwn := records.Quantiles(o.own)
	p50, most := records.Quantiles(o.others)
	line("seed\t%d\tfaults for %s, %d sessions, %d replicas, %s in all", seed.Value(), w.time, len(w.ids), len(w.replicas), w.clock())
	line("messages accepted\t%d\tof %d sent in %d tries, %d repeated", f.Accepted, len(k.sent), k.tries, k.repeats)
	line("… answered\t%d", f.Answered)
	line("… failed\t%d\tby the model", f.Failed)
	line("… canceled\t%d\tby %d cancels, and by later messages", f.Canceled, k.cancels)
	line("… lost\t%d", f.Lost)
	line("… doubled\t%d", f.Doubled)
	line("sessions stuck\t%d", f.stuck)
	line("messages in the log\t%d\tresults of tools %d; summaries %d, without the model %d", f.Messages, f.Results, f.summaries, f.fallbacks)
	line("questions asked\t%d\tbefore a tool may start; %d answers taken", f.Asked, k.decided)
	line("faults\t%s", w.breaker.counts())
	line("… of the model\t%s", w.model.counts())
	line("… of clients\t%d\tconnections cut", w.road.broken.Load())
	line("answers to clients\t%v", k.refused)
	line("runs resumed\t%d\tafter a fault or a question, most attempts of one %d", f.Resumed, f.Attempts)
	line("taken over by others\t%d\tafter p50 %s, at most %s; %d after more than %s, as more was broken", len(o.others), p50, most, late(o.others), promised)
	line("… by the restart\t%d\tafter p50 %s, at most %s", len(o.own), p50own, mostOwn)
	p50, most = records.Quantiles(w.restarts)
	line("killed alone\t%d\tstart → ready p50 %s, at most %s", len(w.restarts), p50, most)
	line("feeds checked\t%d\t%d durable events of %d stored; %d times Bobbin's client did not mend its connection itself",
		f.feeds, f.events, f.Events, f.gaveUp)
	line("… texts on their way\t%d\twhole, %d in part", f.whole, f.begun)
	line("errors in logs\t%d", w.internal)
	line("violations\t%d", len(w.violations))
	_ = table.Flush()
	w.t.Logf("\n%s", out.String())
	if len(w.violations) > 0 {
		w.t.Errorf("%d violations", len(w.violations))
	}
}
