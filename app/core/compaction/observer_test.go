package compaction_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/must"
)

// watcher records what a Compactor reports, a line each.
type watcher struct {
	core.NoObserver
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (w *watcher) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

func (w *watcher) Fitted(_ context.Context, t compaction.Turn, d contextwindow.Decision, err error) {
	w.note("fitted %s: fits %t, rungs %v, floor %t", t.Profile.Model.Info().Name, err == nil && d.Total <= d.Budget.Usable, d.Rungs, errors.Is(err, core.ErrContextFloor))
}

func (w *watcher) Sending(_ context.Context, _ compaction.Turn, d contextwindow.Decision, sent contextwindow.PromptSize) {
	w.note("sending: not empty %t, fits %t", sent.Total() > 0, sent.Used(d) <= d.Total)
}

func (w *watcher) CountOf(_ string, counter core.Counter, n int, labels ...string) {
	w.Count(counter, n, labels...)
}

func (w *watcher) Summarizing(ctx context.Context, _ compaction.Turn, o contextwindow.Order) (context.Context, func(compaction.Made)) {
	w.note("summarizing by %s on rung %d", o.Trigger, o.Rung)
	return ctx, func(m compaction.Made) {
		w.note("ended: %s %s, %s, error %t", m.Outcome, m.Cause, m.Summary.Strategy, m.Err != nil)
	}
}

func (w *watcher) Committed(_ context.Context, c compaction.Commit) {
	w.note("committed version %d: smaller %t, stale %t", c.Turn.Session.SummaryVersion, c.After.Total < c.Before.Total, errors.Is(c.Err, core.ErrStale))
}

func (w *watcher) Count(counter core.Counter, n int, labels ...string) {
	if !slices.Contains(labels, "renewed") {
		w.note("%s %s %d", counter, strings.Join(labels, " "), n)
	}
}

// told returns what was reported since the last call.
func (w *watcher) told() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.lines = nil }()
	return strings.Join(w.lines, "\n")
}

// watched gives the world's Compactor a watcher.
func (w *world) watched() *watcher {
	watch := &watcher{}
	w.options.Observer = watch
	w.keeper = compaction.New(w.options)
	return watch
}

// Each summary and each report is followed by a count of the conversation. What is
// missing is reported, and logged for the operator; what is imported at each count is not missing.
func TestCoverageIsChecked(t *testing.T) {
	t.Parallel()
	w := full(t)
	var log bytes.Buffer
	w.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	watch := w.watched()
	w.writer.Add(always(notes))
	w.db.Before(func(method string) error {
		if method == "CountOnPath" {
			w.turns(1, 10)
		}
		return nil
	})
	w.fit()
	compare.Contains(t, "watch.told(): want a check after the summary", "context_lost_messages_total  0", watch.told())
	w.Session.SummarizedCount -= 2 // as if the summary covered two messages fewer than the cursor says
	must.Get(w.control().Report(t.Context(), w.scope(), w.Session.ID))(t)
	if told := watch.told(); !strings.Contains(told, "context_lost_messages_total  2") || !strings.Contains(log.String(), `msg="messages lost from the context"`) {
		t.Errorf("got %q and the log %s, want two messages missed", told, &log)
	}
}

// R6: where nothing is summarized by size, a warning is raised when the prompt nears
// the limit: once, across a restart too, and again after a summary by hand.
func TestWarnsOnceInACycle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{AutoSummarize: new(bool)}, 8192)
	watch := w.watched()
	var log strings.Builder
	w.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w.keeper = compaction.New(w.options)
	warnings := func() (n int) {
		for _, e := range w.Events {
			if e.Type == core.EventContextWarning {
				n++
			}
		}
		return n
	}
	grow := func() {
		w.t.Helper()
		for range 100 {
			w.turns(1, 100)
			w.ask("go on")
			if _, d := w.fit(); d.Total*10 > d.Budget.Usable*9 {
				return
			}
			if strings.Contains(watch.told(), "context_warnings") {
				w.t.Fatal("warned before the limit is near")
			}
		}
		w.t.Fatal("the prompt never came near its limit")
	}
	grow()
	compare.Contains(t, "watch.told(): want a warning", "context_warnings_total  1\nfitted", watch.told())
	first := w.Events[len(w.Events)-1]
	got := coretest.Data[core.ContextData](first)
	if first.Type != core.EventContextWarning || first.RunID != w.run.ID || got.Trigger != "near_limit" || got.TokensBefore == 0 || !strings.Contains(got.Reason, "summarize it") {
		t.Errorf("got %s %+v, want the warning of the run with what to do", first.Type, got)
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), `msg="context near its limit"`) {
		t.Errorf("got the log %q, want the warning", log.String())
	}
	w.fit()
	w.keeper = compaction.New(w.options) // a restart
	w.fit()
	compare.Equal(t, "warnings in one cycle", 1, warnings())
	w.endRun()
	w.writer.Add(always(notes))
	must.Get(w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, ""))(t)
	grow()
	compare.Equal(t, "warnings in two cycles", 2, warnings())
}
