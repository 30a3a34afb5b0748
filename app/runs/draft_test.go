package runs_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/runs"
	"bobbin/tests/coretest"
)

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
				if _, err := j.Append(ctx, w); err != nil {
					t.Errorf("take back: %v", err)
				}
				return hang(ctx, j, run)
			}}.Execute,
		})
		p.run(t)
		run := p.accept(t, "hello")
		<-time.After(10 * time.Second)
		synctest.Wait()
		if got := core.DecodeDraft(p.db.Run(run.ID).Partial); got.MessageID != "m2" {
			t.Errorf("got %+v stored as the message on its way, want m2", got)
		}
		p.service.Cancel(run.ID)
		synctest.Wait()
	})
}
