package chat

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/llm"
	"bobbin/app/core/redact"
)

// TitlerOptions configure a Titler. All are required.
type TitlerOptions struct {
	Sessions    core.SessionStore
	LoadProfile func(ctx context.Context, session core.Session, model string) (compaction.Profile, error) // agents.Profiles.Profile
	Models      llm.Models
	Counter     core.TextCounter
	Budget      llm.Budget
	Feed        core.Publisher
	Logger      *slog.Logger
}

// Limits of the work on titles.
const (
	modelTime = 30 * time.Second // of a model call, which may think before it writes
	storeTime = 5 * time.Second  // of writing
	maxBusy   = 64               // concurrent titles; beyond it sessions wait for their next question
)

// Titler gives sessions a title beside the work on their first run, which does not wait for
// it. A nil one creates none. Safe for concurrent use.
//
// The title is made of the question, so that it reaches watchers of the run while the answer is
// being written.
//
// A small model writes the title within limits of time and length. If it fails, or the budget
// does not allow it, the title is the first words of the question. A title is written once, and
// never replaces one that a user chose (repositories.Sessions.GiveTitle). A title lost in a
// crash is made of the session's next question.
//
// A Titler owns the goroutines that create titles; Run waits for all of them.
type Titler struct {
	TitlerOptions
	work context.Context //nolint:containedctx // of the goroutines, which outlive their callers
	stop context.CancelFunc
	wait sync.WaitGroup

	mu       sync.Mutex
	stopping bool                    // guarded by mu
	busy     map[core.SessionID]bool // guarded by mu
}

// NewTitler returns a Titler. It works until Run's context ends.
func NewTitler(o TitlerOptions) *Titler {
	work, stop := context.WithCancel(context.Background())
	return &Titler{TitlerOptions: o, work: work, stop: stop, busy: map[core.SessionID]bool{}}
}

// Begin creates a title for an untitled session from the run's question. It returns immediately;
// session is as the run found it.
func (t *Titler) Begin(session core.Session, run core.Run) {
	if t == nil || session.Title != "" || session.TitledAt != nil || session.Temporary { // it is in no list
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopping || t.busy[session.ID] || len(t.busy) >= maxBusy {
		return
	}
	t.busy[session.ID] = true
	t.wait.Go(func() {
		// More people see a title than the conversation, so secrets are left out.
		question := redact.Text(run.Input.Content)
		title, calls, err := t.requestTitle(t.work, session, run, question)
		if err != nil {
			t.Logger.InfoContext(t.work, "title created without a model", "session_id", session.ID, "err", err)
		}
		if title = cmp.Or(title, core.TitleOf(question)); title != "" || len(calls) > 0 {
			t.storeTitle(t.work, session, run, core.NewTitle{Title: title, Calls: calls})
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.busy, session.ID)
	})
}

// Run waits until ctx ends. Titles in progress then become the first words of their questions;
// it returns when all are written.
func (t *Titler) Run(ctx context.Context) error {
	<-ctx.Done()
	if t == nil {
		return nil
	}
	t.mu.Lock()
	t.stopping = true
	t.mu.Unlock()
	t.stop()
	t.wait.Wait()
	return nil
}

// storeTitle writes the title and its model calls, even while the process stops.
func (t *Titler) storeTitle(ctx context.Context, session core.Session, run core.Run, title core.NewTitle) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	title.SessionID, title.RunID, title.Of = session.ID, run.ID, []core.MessageID{run.UserMessageID}
	events, err := t.Sessions.GiveTitle(ctx, core.Tenant{Owner: session.Owner}, title)
	if err != nil && !errors.Is(err, core.ErrNotFound) {
		t.Logger.WarnContext(ctx, "session not given a title", "session_id", session.ID, "run_id", run.ID, "err", err)
	}
	if err == nil {
		t.Feed.Publish(ctx, events)
	}
}
