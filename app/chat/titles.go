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
	Messages    core.MessageStore
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
	storeTime = 5 * time.Second  // of reading, and of writing
	maxBusy   = 64               // concurrent titles; beyond it sessions wait for their next answer
)

// Titler gives sessions a title beside the work on their first run, which does not wait for
// it. A nil one creates none. Safe for concurrent use.
//
// The title is requested together with the question, so that it reaches watchers of the run
// while the answer is being written. If the request fails, it is repeated after the answer.
//
// A small model writes the title within limits of time and length. If it fails, or the budget
// does not allow it, the title is the first words of the question. A title is written once, and
// never replaces one that a user chose (repositories.Sessions.GiveTitle). A title lost in a
// crash is created after the session's next answer.
//
// A Titler owns the goroutines that create titles; Run waits for all of them.
type Titler struct {
	TitlerOptions
	work context.Context //nolint:containedctx // of the goroutines, which outlive their callers
	stop context.CancelFunc
	wait sync.WaitGroup

	mu       sync.Mutex
	stopping bool // guarded by mu
	// busy maps the sessions in work to their next work, if any; guarded by mu.
	busy map[core.SessionID]func()
}

// NewTitler returns a Titler. It works until Run's context ends.
func NewTitler(o TitlerOptions) *Titler {
	work, stop := context.WithCancel(context.Background())
	return &Titler{TitlerOptions: o, work: work, stop: stop, busy: map[core.SessionID]func(){}}
}

// Begin creates a title for an untitled session from the run's question. If no model writes
// one, Answered creates it. It returns immediately; session is as the run found it.
func (t *Titler) Begin(session core.Session, run core.Run) {
	if t == nil || !needsTitle(session) {
		return
	}
	t.startWork(run.SessionID, func() {
		m := newMaterial(session, run)
		title, calls, err := t.requestTitle(t.work, m)
		if err == nil {
			title = cmp.Or(title, firstWords(m.question)) // the model wrote none, and would write none after the answer
		}
		if title != "" || len(calls) > 0 {
			t.storeTitle(t.work, m, title, calls)
		}
	})
}

// Answered creates a title for the session of a run that ended with an answer, if it still
// needs one. It returns immediately; session is as the run found it.
func (t *Titler) Answered(session core.Session, run core.Run) {
	if t == nil || !needsTitle(session) {
		return
	}
	t.startWork(run.SessionID, func() {
		m, needed, err := t.loadMaterial(t.work, run)
		if err != nil {
			t.logFailure(t.work, run, err)
		} else if needed {
			title, calls := t.makeTitle(t.work, m)
			t.storeTitle(t.work, m, title, calls)
		}
	})
}

// startWork runs work for a session in a goroutine, after the current work for the session.
func (t *Titler) startWork(id core.SessionID, work func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, busy := t.busy[id]; busy {
		t.busy[id] = work
		return
	}
	if t.stopping || len(t.busy) >= maxBusy {
		return
	}
	t.busy[id] = nil
	t.wait.Go(func() {
		for work != nil {
			work()
			work = t.nextWork(id)
		}
	})
}

// nextWork returns the next work for a session; nil = none, and the session is no longer busy.
func (t *Titler) nextWork(id core.SessionID) func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	work := t.busy[id]
	t.busy[id] = nil
	if work == nil {
		delete(t.busy, id)
	}
	return work
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

// needsTitle reports whether the session has no title yet, or lost the one from a message that
// was deleted. A temporary one, which is in no list, needs none.
func needsTitle(s core.Session) bool { return s.Title == "" && s.TitledAt == nil && !s.Temporary }

func (t *Titler) logFailure(ctx context.Context, run core.Run, err error) {
	if !errors.Is(err, core.ErrNotFound) {
		t.Logger.WarnContext(ctx, "session not given a title", "session_id", run.SessionID, "run_id", run.ID, "err", err)
	}
}

// material is the input of a title.
type material struct {
	run              core.Run
	session          core.Session
	question, answer string
	messages         []core.MessageID // of question and answer
}

// newMaterial returns the input of a title before there is an answer. More people see a title
// than the conversation, so secrets are left out.
func newMaterial(session core.Session, run core.Run) material {
	return material{run: run, session: session, question: redact.Text(run.Input.Content), messages: []core.MessageID{run.UserMessageID}}
}

// loadMaterial reads the input of a title after an answer; false = the session needs none.
func (t *Titler) loadMaterial(ctx context.Context, run core.Run) (material, bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	session, err := t.Sessions.Get(ctx, run.Tenant(), run.SessionID)
	if err != nil {
		return material{}, false, err
	}
	if !needsTitle(session) {
		return material{}, false, nil
	}
	after, err := t.Messages.GetMessagesAfter(ctx, run.Tenant(), run.SessionID, run.UserMessageID)
	if err != nil {
		return material{}, false, err
	}
	m := newMaterial(session, run)
	for _, message := range after {
		if message.RunID == run.ID && message.Role == core.RoleAssistant && message.Content != "" {
			m.answer, m.messages = redact.Text(message.Content), []core.MessageID{run.UserMessageID, message.ID}
		}
	}
	return m, true, nil
}

// storeTitle writes the title and its model calls, even while the process stops.
func (t *Titler) storeTitle(ctx context.Context, m material, title string, calls []core.ModelCall) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	events, err := t.Sessions.GiveTitle(ctx, core.Tenant{Owner: m.session.Owner}, core.NewTitle{
		SessionID: m.session.ID, RunID: m.run.ID, Title: title, Of: m.messages, Calls: calls,
	})
	if err != nil {
		t.logFailure(ctx, m.run, err)
		return
	}
	t.Feed.Publish(ctx, events)
}
