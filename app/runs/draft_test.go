package runs_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/runs"
	"bobbin/app/runs/runstest"
)

// slowStore takes its time to save what a run has said so far.
type slowStore struct{ runstest.Runs }

func (s slowStore) SavePartial(ctx context.Context, run core.RunID, attempt int, text string) error {
	<-time.After(2 * time.Second)
	return s.Runs.SavePartial(ctx, run, attempt, text)
}

// A text that is being saved while it is taken back does not come back from the dead: what
// is stored in the end is the message that takes its place, so that the next attempt, if
// this one dies, takes that back.
func TestSavedTextDoesNotComeBack(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, runstest.New(), "w", runs.Limits{}, nil)
		store := slowStore{p.db.RunStore()}
		p.journal = runs.NewJournal(store, p.feed, slog.New(slog.DiscardHandler))
		p.service = runs.New(runs.Options{
			Store: store, Messages: p.db.MessageStore(), Journal: p.journal, Counter: counter{}, Worker: "w", Logger: slog.New(slog.DiscardHandler),
			Engine: engine{p.journal, func(ctx context.Context, j *runs.Journal, run core.Run) error {
				say(ctx, j, run, "m1", 0, "half of")
				<-time.After(1500 * time.Millisecond) // the clock of drafts has begun to save it
				w := write(run)
				w.Next = "m2"
				w.Events = []core.Event{core.NewEvent(run.SessionID, run.ID, core.EventMessageDiscarded, core.DiscardedData{MessageID: "m1"})}
				if _, err := j.Append(ctx, w); err != nil {
					t.Errorf("take back: %v", err)
				}
				return hang(ctx, j, run)
			}},
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
