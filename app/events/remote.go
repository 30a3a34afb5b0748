package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bobbin/app/core"
)

// How replicas exchange partial texts.
const (
	questionSubject = "texts"
	answerTime      = 500 * time.Millisecond // for the owner to answer; after that the saved draft is used
	sharedPoll      = 5 * time.Second
	pieceSize       = 64 << 10  // bytes of text in one message of the bus
	maxWire         = 512 << 10 // bytes of an event on the bus; NATS accepts 1 MiB
	maxBuffered     = 1024      // buffered deltas
)

// NewShared returns a feed over a bus that connects several processes. It requests the partial
// text of a message from the process that writes it, and falls back to the draft that the run
// has saved. Text of an attempt that no longer owns its run is dropped. Serve must run as long
// as the feed is used.
func NewShared(bus Bus, store core.EventStore, runs core.RunStore, logger *slog.Logger) *Feed {
	f := New(bus, store, logger)
	f.runs, f.poll = runs, sharedPoll
	return f
}

// question asks for the partial texts of a session.
type question struct {
	Session core.SessionID `json:"session"`
	Reply   string         `json:"reply"` // subject
}

// Serve answers the questions of other processes for partial texts until ctx ends. It returns
// nil.
func (f *Feed) Serve(ctx context.Context) error {
	receiveMessages(ctx, f.bus, f.log, questionSubject, func(data []byte) {
		var q question
		if len(data) == 0 || json.Unmarshal(data, &q) != nil {
			return
		}
		for _, e := range f.live.snapshot(q.Session) {
			if e.Type.IsText() {
				f.sendText(ctx, q.Reply, e)
			}
		}
	})
	return nil
}

// sendText publishes a text in pieces that fit the bus.
func (f *Feed) sendText(ctx context.Context, subject string, e core.Event) {
	d := deltaOf(e).data
	for rest := d; rest.Text != ""; rest = rest.From(d.Offset + len(d.Text)) {
		d = rest
		d.Text = core.Clip(rest.Text, pieceSize)
		f.publishTo(ctx, subject, e.WithData(d))
	}
}

// peerTexts is a watcher's state of the messages that other processes write.
type peerTexts struct {
	inbox    *Subscription // for answers; nil = nothing was asked yet
	reply    string        // its subject
	deadline <-chan time.Time
	answered bool    // an answer came since the last question
	buffered []delta // deltas that wait for the text before them
	rejected attempt // that does not own its run
}

// requestSnapshot requests the partial text of a message that another process writes. It does
// not wait for the answer.
func (w *watcher) requestSnapshot(ctx context.Context) error {
	if w.feed.runs == nil || w.peers.deadline != nil {
		return nil
	}
	run, err := w.activeRun(ctx)
	r := &w.peers
	if err != nil || run.ID == "" || w.feed.live.executes(run) {
		r.buffered = nil // this process writes it: no other one has more
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
		err = w.feed.bus.Publish(questionSubject, raw)
	}
	r.deadline, r.answered = time.After(answerTime), false
	return err
}

// activeRun returns the session's running run; an empty one if there is none.
func (w *watcher) activeRun(ctx context.Context) (core.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	run, err := w.feed.runs.Active(ctx, w.scope, w.session)
	if errors.Is(err, core.ErrNotFound) || err == nil && run.Status != core.RunRunning {
		return core.Run{}, nil
	}
	if err != nil {
		return core.Run{}, fmt.Errorf("active run of session %s: %w", w.session, err)
	}
	return run, nil
}

func (w *watcher) handleAnswer(ctx context.Context) error {
	message, err := w.peers.inbox.Take()
	if err != nil || message == nil {
		return err
	}
	if message.signalsLoss() {
		w.pollStore(ctx)
		return nil
	}
	e, _, err := message.decodeOnce()
	if err != nil {
		return err
	}
	w.peers.answered = true
	if err := w.deliverDelta(ctx, deltaOf(e)); err != nil {
		return err
	}
	return w.deliverBuffered(ctx)
}

// stopWaitingForPeers ends the wait for an answer; without one it uses the draft that the run
// has saved. By now other processes know of this watcher's subscription; it polls the store for
// what they published before.
func (w *watcher) stopWaitingForPeers(ctx context.Context) error {
	if !w.peers.answered {
		run, err := w.activeRun(ctx)
		if err != nil {
			return err
		}
		d := core.DecodeDraft(run.Partial)
		if d.MessageID != "" && d.Attempt == run.Attempt {
			e := core.NewEvent(w.session, run.ID, core.EventMessageDelta, core.DeltaData{MessageID: d.MessageID, ParentID: d.ParentID, Attempt: d.Attempt, Text: d.Text})
			err = w.deliverDelta(ctx, deltaOf(e))
		}
		if err != nil {
			return err
		}
	}
	if err := w.deliverBuffered(ctx); err != nil {
		return err
	}
	w.peers.deadline, w.peers.buffered = nil, nil
	w.pollStore(ctx)
	return nil
}

// bufferDelta keeps a delta until the text before it arrives.
func (w *watcher) bufferDelta(d delta) {
	if len(w.peers.buffered) < maxBuffered {
		w.peers.buffered = append(w.peers.buffered, d)
	}
}

// deliverBuffered delivers buffered deltas whose preceding text has arrived.
func (w *watcher) deliverBuffered(ctx context.Context) error {
	held := w.peers.buffered
	w.peers.buffered = nil
	for _, d := range held {
		if d.data.Offset > w.delivered[keyOf(d)].bytes {
			w.bufferDelta(d)
			continue
		}
		if err := w.deliverDelta(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// ownsRun reports whether the delta's attempt owns its run. In a single process there is no
// other attempt; a process that was suspended may publish text of a run that another process
// owns by now.
func (w *watcher) ownsRun(ctx context.Context, d delta) (bool, error) {
	a := attempt{run: d.event.RunID, number: d.data.Attempt}
	if w.feed.runs == nil || a == w.lastWriter {
		return true, nil
	}
	if a == w.peers.rejected {
		return false, nil
	}
	run, err := w.activeRun(ctx)
	if err != nil {
		return false, err
	}
	if run.ID != a.run || run.Attempt != a.number {
		w.peers.rejected = a
		return false, nil
	}
	return true, nil
}

// signalSubject is where processes wake each other.
const signalSubject = "work"

// resubscribeDelay is the pause before messages are received again after an error.
const resubscribeDelay = 500 * time.Millisecond

// Signals wake other processes over the bus. Safe for concurrent use.
type Signals struct {
	bus Bus
	log *slog.Logger
}

// NewSignals returns signals over the bus.
func NewSignals(bus Bus, logger *slog.Logger) *Signals { return &Signals{bus: bus, log: logger} }

// Send sends a signal to all processes, including this one. It does not fail: lost signals are
// made up for by sweeps.
func (s *Signals) Send(ctx context.Context, signal core.Wakeup) {
	raw, err := json.Marshal(signal)
	if err == nil {
		err = s.bus.Publish(signalSubject, raw)
	}
	if err != nil {
		s.log.WarnContext(ctx, "other replicas not notified", "err", err)
	}
}

// Listen calls handle for each signal that is sent from now on, until ctx ends. When signals may
// have been lost, it passes one that says there may be work.
func (s *Signals) Listen(ctx context.Context, handle func(core.Wakeup)) {
	receiveMessages(ctx, s.bus, s.log, signalSubject, func(data []byte) {
		var signal core.Wakeup
		if json.Unmarshal(data, &signal) != nil { // also an empty one: some may have been lost
			signal = core.Wakeup{Free: true}
		}
		handle(signal)
	})
}

// receiveMessages handles the messages of a subject until ctx ends. It subscribes again, after a pause, when its
// subscription fails.
func receiveMessages(ctx context.Context, bus Bus, log *slog.Logger, subject string, handle func(data []byte)) {
	for ctx.Err() == nil {
		sub, err := bus.Subscribe(subject)
		for err == nil {
			var message *Message
			select {
			case <-sub.Ready():
				message, err = sub.Take()
			case <-ctx.Done():
				err = ctx.Err()
			}
			if message != nil {
				handle(message.Data())
			}
		}
		if sub != nil {
			sub.Close()
		}
		if ctx.Err() == nil {
			log.WarnContext(ctx, "messages of other replicas not received", "subject", subject, "err", err)
		}
		_ = core.Sleep(ctx, resubscribeDelay)
	}
}
