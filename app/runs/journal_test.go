package runs_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/runs"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/must"
)

// runs.partial is saved every second; a short answer costs no write.
func TestPartialIsSavedOnceASecond(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			if run.Input.Content == "short" {
				say(ctx, j, run, "m0", 0, "x")
				return answer(ctx, j, run)
			}
			for i := range 250 { // 2.5 s
				say(ctx, j, run, "m1", i, "x")
				<-time.After(10 * time.Millisecond)
			}
			<-time.After(10 * time.Second)
			return answer(ctx, j, run)
		}).run(t)
		synctest.Wait()
		p.accept(t, "short")
		run := p.accept(t, "long")
		<-time.After(10 * time.Second)
		got := p.db.Conversation(p.session.ID).Partials
		compare.True(t, len(got) == 3 && strings.Contains(got[2], strings.Repeat("x", 250)), "got %d partials %.80q, want 3, the last with all 250 bytes", len(got), got)
		<-time.After(10 * time.Second)
		p.wantStatus(t, run, core.RunSucceeded)
	})
}

// The stream of the model does not wait for the database.
func TestDeltaNeverWaitsForTheDatabase(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			begin := time.Now()
			for i := range 30 {
				say(ctx, j, run, "m1", i, "x")
				<-time.After(100 * time.Millisecond)
			}
			compare.Equal(t, "a stream of: want 3 s", 3*time.Second, time.Since(begin))
			return answer(ctx, j, run)
		}).run(t)
		p.db.Before(func(call string) error {
			if call == "SavePartial" {
				return errDown
			}
			return nil
		})
		run := p.accept(t, "hello")
		<-time.After(5 * time.Second)
		p.wantStatus(t, run, core.RunSucceeded)
		compare.Equal(t, "deltas passed on", 30, len(p.feed.Passing()))
	})
}

// A process that died while a run was to be canceled: its restart keeps what was
// said. Otherwise it takes that back, as the next attempt writes a new message.
func TestTextOfALostAttempt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		cancel bool
		stored bool // the message is in the log already
		status core.RunStatus
		log    []string
		taken  bool // message.discarded comes
	}{
		{"goes on", false, false, core.RunSucceeded, []string{"hello", "re: hello"}, true},
		{"was to be canceled", true, false, core.RunCanceled, []string{"hello", "Once upon"}, false},
		{"finished message", false, true, core.RunSucceeded, []string{"hello", "Once upon", "re: hello"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				db := coretest.New()
				dead := newProcess(t, db, "w", runs.Limits{}, answer)
				dead.dead = true
				run := dead.accept(t, "hello")
				store := db.Runs
				if c.stored {
					m := message(run, core.RoleAssistant, "Once upon")
					m.ID = "m1"
					must.Get(store.Write(t.Context(), write(run, m)))(t)
				}
				must.Do(t, store.SavePartial(t.Context(), run.ID, 1, `{"message_id":"m1","text":"Once upon"}`))
				if c.cancel {
					must.Get2(store.RequestCancel(t.Context(), ann, run.ID))(t)
				}
				p := newProcess(t, db, "w/2", runs.Limits{}, answer)
				p.session = dead.session
				p.run(t)
				synctest.Wait()
				p.wantStatus(t, run, c.status)
				p.wantTexts(t, c.log...)
				compare.Equal(t, "message.discarded", c.taken, slices.Contains(p.discarded(), "m1"))
			})
		})
	}
}

// message.discarded retracts the partial text of a lost attempt, even text that was shown but
// not saved, and that of an attempt that died before it could retract the text of an earlier
// one.
func TestUnsavedTextOfALostAttemptIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		attempts int // that are lost
		logged   int // messages of the run in the log
		cancel   bool
	}{{"first words", 1, 0, false}, {"after a tool", 1, 2, false}, {"died again", 3, 0, false}, {"was to be canceled", 1, 0, true}} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				db := coretest.New()
				dead := newProcess(t, db, "w", runs.Limits{}, answer)
				dead.dead = true
				run := dead.accept(t, "hello")
				store := db.Runs
				for range c.logged {
					must.Get(store.Write(t.Context(), write(run, message(run, core.RoleAssistant, "one moment"))))(t)
				}
				if c.cancel {
					must.Get2(store.RequestCancel(t.Context(), ann, run.ID))(t)
				}
				var want []core.MessageID
				for attempt := 1; attempt <= c.attempts; attempt++ {
					if attempt > 1 { // its process dies before it can do anything
						takeOver(t, db, "w", "w")
					}
					want = append(want, run.DraftID(attempt, c.logged))
				}
				p := newProcess(t, db, "w/2", runs.Limits{}, answer)
				p.session = dead.session
				p.run(t)
				synctest.Wait()
				compare.Equal(t, "taken back", want, p.discarded())
			})
		})
	}
}

// The newer attempt of a run replaces the older one in the same process, and
// begins when that has left.
func TestNewerAttemptReplacesTheOlder(t *testing.T) {
	simulate(t, func(t *testing.T) {
		var left atomic.Bool
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			if run.Attempt == 1 {
				<-ctx.Done()
				<-time.After(time.Second)
				left.Store(true)
				return ctx.Err()
			}
			compare.True(t, left.Load(), "got two attempts at work, want one")
			return answer(ctx, j, run)
		}).run(t)
		run := p.accept(t, "hello")
		synctest.Wait()
		must.Do(t, p.db.Runs.Release(t.Context(), "w"))
		<-time.After(6 * time.Second) // the sweep takes it over
		p.wantStatus(t, run, core.RunSucceeded)
		p.wantTexts(t, "hello", "re: hello")
	})
}

// A piece that leaves a hole in the text is not kept as if nothing were missing.
func TestTextWithAHoleIsNotKept(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			say(ctx, j, run, "m1", 0, "abc")
			say(ctx, j, run, "m2", 3, "def")
			return hang(ctx, j, run)
		}).run(t)
		run := p.accept(t, "hello")
		synctest.Wait()
		p.service.Cancel(run.ID)
		synctest.Wait()
		p.wantStatus(t, run, core.RunCanceled)
		p.wantTexts(t, "hello")
	})
}

// A write that the store refuses is not retried, and one that fails otherwise is not retried
// after ctx has ended.
func TestAppendErrors(t *testing.T) {
	t.Parallel()
	reason := errors.New("the reason")
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"stale", core.ErrStale, core.ErrStale},
		{"invalid", core.ErrInvalid, core.ErrInvalid},
		{"down", errDown, errDown},
		{"given up", errDown, reason},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				cancel(reason)
				p := newProcess(t, coretest.New(), "w", runs.Limits{}, answer)
				p.db.Before(func(string) error { return c.err })
				_, err := p.journal.Append(ctx, core.RunWrite{RunID: "r1"})
				compare.Error(t, "err", c.want, err)
				compare.Equal(t, "tries", 1, p.db.CallCount("Write"))
			})
		})
	}
}

// A run that cannot write because its session is busy writes later: it has not lost.
func TestAppendToABusySession(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, answer).run(t)
		busy := 0
		p.db.Before(func(call string) error {
			if call == "Write" && busy < 3 {
				busy++
				return core.SessionBusy("s", "another transaction writes to it")
			}
			return nil
		})
		run := p.accept(t, "hello")
		<-time.After(5 * time.Second)
		p.wantStatus(t, run, core.RunSucceeded)
		compare.Equal(t, "refusals", 3, busy)
	})
}

// slowStore is slow at saving drafts.
type slowStore struct{ coretest.Runs }

func (s slowStore) SavePartial(ctx context.Context, run core.RunID, attempt int, text string) error {
	<-time.After(2 * time.Second)
	return s.Runs.SavePartial(ctx, run, attempt, text)
}

// A draft that is being saved while it is retracted does not reappear: what is stored in the
// end is the message that replaces it, so that the next attempt, if this one dies, retracts
// that one.
func TestSavedTextDoesNotComeBack(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, nil)
		store := slowStore{p.db.Runs}
		p.journal = runs.NewRecorder(store, p.newFeed(), slog.New(slog.DiscardHandler))
		p.service = runs.New(runs.Options{
			Store: store, Messages: p.db.Messages, Journal: p.journal, Counter: counter{}, Worker: "w", Logger: slog.New(slog.DiscardHandler),
			Execute: engine{p.journal, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
				say(ctx, j, run, "m1", 0, "half of")
				<-time.After(1500 * time.Millisecond) // the clock of drafts has begun to save it
				w := write(run)
				w.Next = "m2"
				w.Events = []core.Event{core.NewEvent(run.SessionID, run.ID, core.EventMessageDiscarded, core.DiscardedData{MessageID: "m1"})}
				compare.Error(t, "take back", nil, compare.ErrorOf(j.Append(ctx, w)))
				return hang(ctx, j, run)
			}}.Execute,
		})
		p.run(t)
		run := p.accept(t, "hello")
		<-time.After(10 * time.Second)
		synctest.Wait()
		compare.Equal(t, "stored as the message on its way", "m2", core.DecodeDraft(p.db.Run(run.ID).Partial).MessageID)
		p.service.Cancel(run.ID)
		synctest.Wait()
	})
}
