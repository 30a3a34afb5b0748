package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"bobbin/app/core"
)

// How replicas tell each other of messages on their way.
const (
	askSubject = "texts"
	askTime    = 500 * time.Millisecond // for the owner to answer; then what was saved counts
	sharedPoll = 5 * time.Second
	pieceSize  = 64 << 10  // bytes of text that cross the bus at once
	maxWire    = 512 << 10 // bytes of an event that crosses the bus; NATS takes 1 MiB
	maxHeld    = 1024      // deltas that wait for the text before them
)

// runStore is what a Feed of several processes needs of runs in storage.
type runStore interface {
	// Active returns the session's run at work; ErrNotFound if there is none.
	Active(ctx context.Context, scope core.Scope, session core.SessionID) (core.Run, error)
}

// NewShared returns a feed over a bus that joins several processes. The text so far of
// a message that another process writes is asked of that, or else is what the run has
// saved; text of an attempt that does not hold its run any more is dropped. Serve must
// run as long as the feed is used.
func NewShared(bus Bus, store eventStore, runs runStore, logger *slog.Logger) *Feed {
	f := New(bus, store, logger)
	f.runs, f.poll = timedRuns{runs}, sharedPoll
	return f
}

// question asks for the texts on their way of a session.
type question struct {
	Session core.SessionID `json:"session"`
	Reply   string         `json:"reply"` // subject
}

// Serve tells other processes, until ctx ends, what the messages on their way in this
// one say so far. It returns nil.
func (f *Feed) Serve(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := f.answerAll(ctx); err != nil && ctx.Err() == nil {
			f.log.WarnContext(ctx, "questions of other replicas not heard", "err", err)
		}
		wait(ctx, askTime)
	}
	return nil
}

// wait returns after d, or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (f *Feed) answerAll(ctx context.Context) error {
	sub, err := f.bus.Subscribe(askSubject)
	if err != nil {
		return err
	}
	defer sub.Close()
	for {
		select {
		case <-sub.Ready():
		case <-ctx.Done():
			return nil
		}
		message, err := sub.Take()
		if err != nil {
			return err
		}
		if message != nil {
			f.answer(ctx, message.Data())
		}
	}
}

// answer publishes the texts that were asked for, if they are of this process.
func (f *Feed) answer(ctx context.Context, raw []byte) {
	var q question
	if len(raw) == 0 || json.Unmarshal(raw, &q) != nil {
		return
	}
	for _, t := range f.texts.of(q.Session) {
		e := core.Event{SessionID: q.Session, RunID: t.run, Type: t.kind, At: core.Now()}
		f.sendText(ctx, q.Reply, e, core.DeltaData{MessageID: t.message, Attempt: t.attempt, Text: t.content})
	}
}

// sendText publishes a text in pieces that the bus can carry.
func (f *Feed) sendText(ctx context.Context, subject string, e core.Event, d core.DeltaData) {
	for rest := d.Text; rest != ""; {
		d.Text = rest[:border(rest, pieceSize)]
		piece := core.NewEvent(e.SessionID, e.RunID, e.Type, d)
		piece.At = e.At
		f.put(ctx, subject, piece)
		rest, d.Offset = rest[len(d.Text):], d.Offset+len(d.Text)
	}
}

// border returns how many of the first n bytes of s are whole characters.
func border(s string, n int) int {
	if len(s) <= n {
		return len(s)
	}
	for n > 1 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

// remote is what a watcher knows of the messages that other processes write.
type remote struct {
	inbox   Subscription // of answers; nil = nothing was asked yet
	reply   string       // its subject
	asked   <-chan time.Time
	heard   bool    // there was an answer since the last question
	held    []delta // that wait for the text before them
	refused attempt // that does not hold its run
}

// answers tells when answers came in; nil if nothing was asked.
func (r *remote) answers() <-chan struct{} {
	if r.inbox == nil {
		return nil
	}
	return r.inbox.Ready()
}

func (r *remote) close() {
	if r.inbox != nil {
		r.inbox.Close()
	}
}

// join asks for the text so far of a message that another process writes. It does not
// wait for the answer.
func (w *watcher) join(ctx context.Context) error {
	if w.feed.runs == nil || w.remote.asked != nil {
		return nil
	}
	run, err := w.atWork(ctx)
	r := &w.remote
	if err != nil || run.ID == "" || w.feed.texts.has(run) {
		r.held = nil // it is ours: what the snapshot does not have nobody has
		return err
	}
	if r.inbox == nil {
		r.reply = "reply." + core.NewID[string]()
		if r.inbox, err = w.feed.bus.Subscribe(r.reply); err != nil {
			return fmt.Errorf("watch session %s: %w", w.session, err)
		}
	}
	raw, err := json.Marshal(question{Session: w.session, Reply: r.reply})
	if err == nil {
		err = w.feed.bus.Publish(askSubject, raw)
	}
	r.asked, r.heard = time.After(askTime), false
	return err
}

// atWork returns the session's run at work; an empty one if there is none.
func (w *watcher) atWork(ctx context.Context) (core.Run, error) {
	run, err := w.feed.runs.Active(ctx, w.scope, w.session)
	if errors.Is(err, core.ErrNotFound) || err == nil && run.Status != core.RunRunning {
		return core.Run{}, nil
	}
	if err != nil {
		return core.Run{}, fmt.Errorf("run at work of session %s: %w", w.session, err)
	}
	return run, nil
}

// answered takes a piece of the text that was asked for.
func (w *watcher) answered(ctx context.Context) error {
	message, err := w.remote.inbox.Take()
	if err != nil || message == nil {
		return err
	}
	if len(message.Data()) == 0 {
		return w.look(ctx)
	}
	e, _, err := message.decode()
	if err != nil {
		return err
	}
	w.remote.heard = true
	if err := w.give(ctx, delta{event: e, data: message.delta}); err != nil {
		return err
	}
	return w.release(ctx)
}

// giveUp ends the wait for an answer: without one, what the run has saved counts. The
// others have heard of this watcher by now; what they told before, it looks for.
func (w *watcher) giveUp(ctx context.Context) error {
	if !w.remote.heard {
		run, err := w.atWork(ctx)
		if err != nil {
			return err
		}
		d := core.DecodeDraft(run.Partial)
		if d.MessageID != "" && d.Attempt == run.Attempt {
			e := core.Event{SessionID: w.session, RunID: run.ID, Type: core.EventMessageDelta, At: core.Now()}
			err = w.give(ctx, delta{event: e, data: core.DeltaData{MessageID: d.MessageID, Attempt: d.Attempt, Text: d.Text}})
		}
		if err != nil {
			return err
		}
	}
	if err := w.release(ctx); err != nil {
		return err
	}
	w.remote.asked, w.remote.held = nil, nil
	return w.look(ctx)
}

// hold keeps a delta until the text before it is there.
func (w *watcher) hold(d delta) {
	if len(w.remote.held) < maxHeld {
		w.remote.held = append(w.remote.held, d)
	}
}

// release gives what waited for text that is there now.
func (w *watcher) release(ctx context.Context) error {
	held := w.remote.held
	w.remote.held = nil
	for _, d := range held {
		if d.data.Offset > w.given[keyOf(d)].bytes {
			w.hold(d)
			continue
		}
		if err := w.give(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether the delta's attempt holds its run. In a process by itself
// there is no other; a process that was suspended may go on to tell of a run that
// belongs to somebody else by now.
func (w *watcher) holds(ctx context.Context, d delta) (bool, error) {
	a := attempt{run: d.event.RunID, number: d.data.Attempt}
	if w.feed.runs == nil || a == w.writing {
		return true, nil
	}
	if a == w.remote.refused {
		return false, nil
	}
	run, err := w.atWork(ctx)
	if err != nil {
		return false, err
	}
	if run.ID != a.run || run.Attempt != a.number {
		w.remote.refused = a
		return false, nil
	}
	return true, nil
}
