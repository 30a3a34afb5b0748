// Package titles gives sessions a title after their first answer, beside the work
// on runs: nobody waits for it.
//
// A title is asked of a small model, within bounds of time and length; where that
// fails, or may not be paid for, it is the first words of the question. It is
// written once, and never over one that a user chose (repositories.Sessions.GiveTitle).
// What a crash takes away the session's next answer makes good.
//
// A Titler owns the goroutines that make titles; Run waits for all of them.
package titles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/llm"
	"bobbin/app/core/redact"
)

// sessionStore reads sessions and gives them titles.
type sessionStore interface {
	Get(ctx context.Context, scope core.Scope, id core.SessionID) (core.Session, error)
	GiveTitle(ctx context.Context, scope core.Scope, t core.NewTitle) ([]core.Event, error)
}

// messageStore reads the message log.
type messageStore interface {
	GetMessagesAfter(ctx context.Context, scope core.Scope, id core.SessionID, after core.MessageID) ([]core.Message, error)
}

// profiler says how a session's agent is set up.
type profiler interface {
	Profile(ctx context.Context, session core.Session, model string) (compaction.Profile, error)
}

// models finds language models by name.
type models interface {
	Get(name string) (llm.Model, error)
	// Cheap returns the small model of the same provider at the same address.
	Cheap(name string) (llm.Model, bool)
}

// counter counts cl100k_base tokens.
type counter interface {
	Text(s string) int
}

// budget knows what may still be spent.
type budget interface {
	Check(ctx context.Context, owner string) error
}

// publisher tells watchers what was committed.
type publisher interface {
	Publish(ctx context.Context, events []core.Event)
}

// Options are what a Titler is made of. All are required.
type Options struct {
	Sessions sessionStore
	Messages messageStore
	Profiles profiler
	Models   models
	Counter  counter
	Budget   budget
	Feed     publisher
	Logger   *slog.Logger
}

// Bounds of the work on titles.
const (
	modelTime = 10 * time.Second // of a model call
	storeTime = 5 * time.Second  // of reading, and of writing
	maxBusy   = 64               // titles at once; what comes then waits for the session's next answer
)

// Titler makes titles. Safe for concurrent use.
type Titler struct {
	Options
	work context.Context //nolint:containedctx // of the goroutines, which outlive their callers
	stop context.CancelFunc
	wait sync.WaitGroup

	mu       sync.Mutex
	stopping bool                    // guarded by mu
	busy     map[core.SessionID]bool // guarded by mu
}

// New returns a Titler. It works until Run's context ends.
func New(o Options) *Titler {
	work, stop := context.WithCancel(context.Background())
	return &Titler{Options: o, work: work, stop: stop, busy: map[core.SessionID]bool{}}
}

// Answered takes note of a run that ended with an answer. It returns at once; the
// session gets its title a little later, if it needs one.
func (t *Titler) Answered(run core.Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopping || t.busy[run.SessionID] || len(t.busy) >= maxBusy {
		return
	}
	t.busy[run.SessionID] = true
	t.wait.Go(func() {
		t.give(t.work, run)
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.busy, run.SessionID)
	})
}

// Run waits until ctx ends. Titles on their way then get the first words of their
// questions; it returns when all are written.
func (t *Titler) Run(ctx context.Context) error {
	<-ctx.Done()
	t.mu.Lock()
	t.stopping = true
	t.mu.Unlock()
	t.stop()
	t.wait.Wait()
	return nil
}

// give gives the run's session a title if it needs one: it has none yet, or the
// message that it was made of was deleted.
func (t *Titler) give(ctx context.Context, run core.Run) {
	m, needed, err := t.material(ctx, run)
	if err == nil && !needed {
		return
	}
	if err == nil {
		made := core.NewTitle{SessionID: run.SessionID, Of: m.messages}
		made.Title, made.Calls = t.title(ctx, m)
		err = t.store(ctx, m.session, made)
	}
	if err != nil && !errors.Is(err, core.ErrNotFound) {
		t.Logger.WarnContext(ctx, "session not given a title", "session_id", run.SessionID, "run_id", run.ID, "err", err)
	}
}

// material is what a title is made of.
type material struct {
	run              core.Run
	session          core.Session
	question, answer string
	messages         []core.MessageID // that these are
}

// material reads what a title is made of; false = the session needs none.
func (t *Titler) material(ctx context.Context, run core.Run) (material, bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	session, err := t.Sessions.Get(ctx, run.Scope(), run.SessionID)
	if err != nil {
		return material{}, false, err
	}
	if session.Title != "" || session.TitledAt != nil {
		return material{}, false, nil
	}
	after, err := t.Messages.GetMessagesAfter(ctx, run.Scope(), run.SessionID, run.UserMessageID)
	if err != nil {
		return material{}, false, err
	}
	m := material{run: run, session: session, question: run.Input.Content, messages: []core.MessageID{run.UserMessageID}}
	for _, message := range after {
		if message.RunID == run.ID && message.Role == core.RoleAssistant && message.Content != "" {
			m.answer, m.messages = message.Content, []core.MessageID{run.UserMessageID, message.ID}
		}
	}
	m.question, m.answer = redact.Text(m.question), redact.Text(m.answer) // a title is seen by more than the conversation
	return m, true, nil
}

// store writes the title, also when the process is about to stop.
func (t *Titler) store(ctx context.Context, session core.Session, made core.NewTitle) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	events, err := t.Sessions.GiveTitle(ctx, core.Scope{Owner: session.Owner}, made)
	if err != nil {
		return fmt.Errorf("store title: %w", err)
	}
	t.Feed.Publish(ctx, events)
	return nil
}
