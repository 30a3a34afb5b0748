package events

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"bobbin/app/core"
)

// joinLimit bounds the text that is joined before it is delivered to the reader, in bytes.
const joinLimit = 8 << 10

// errReaderLeft: the reader left the loop.
var errReaderLeft = errors.New("the reader left")

// Watch yields the events of a session: first the durable ones after from.After (none with
// from.Live), then the partial text of a message being written, then everything as it happens.
// Durable events come in the order of their numbers, each once, without a gap. A
// message.started precedes the first text of a message. The texts of a message come in the
// order of their offsets without gap or overlap; several small ones may be joined. After a
// message.created or message.discarded, and after the end of its run, no more text of that
// message follows.
//
// If the events after from.After are no longer kept, or the session has not reached that number
// (another database), a resync event with the number of the newest event replaces what is
// missing, and new events follow.
//
// The sequence ends only by an error, which is its last element: ErrSlow for a reader that is
// too slow, core.ErrNotFound for a session that is outside the scope or was removed meanwhile,
// the cause of ctx's end, ErrClosed, or an error of the store. It costs nothing until it is
// ranged over, and nothing after the loop is left.
func (f *Feed) Watch(
	ctx context.Context, tenant core.Tenant, session core.SessionID, from core.Cursor,
) iter.Seq2[core.Event, error] {
	return f.WatchRun(ctx, tenant, core.Run{SessionID: session}, from)
}

// WatchRun is Watch of the session of a run that the caller knows to be within the scope. If this
// process executes the run, the store need not be read.
func (f *Feed) WatchRun(ctx context.Context, tenant core.Tenant, run core.Run, from core.Cursor) iter.Seq2[core.Event, error] {
	return func(yield func(core.Event, error) bool) {
		w := &watcher{
			feed: f, scope: tenant, session: run.SessionID, wanted: run.ID, delivered: map[textKey]deliveredText{},
			yield: func(e core.Event) bool { return yield(e, nil) },
		}
		left := f.observer.Watching()
		err := w.run(ctx, from)
		left(err)
		if !errors.Is(err, errReaderLeft) {
			yield(core.Event{}, err)
		}
	}
}

// watcher is the state of one Watch, owned by its reader's goroutine.
type watcher struct {
	feed    *Feed
	scope   core.Tenant
	session core.SessionID
	yield   func(core.Event) bool

	wanted         core.RunID // the run that the reader wants; empty = all of the session
	lastSeq        int64      // number of the last durable event that the reader has
	delivered      map[textKey]deliveredText
	lastWriter     attempt         // whose text the reader got last
	lastNode       core.Event      // the last node.started that the reader has
	startedMessage core.MessageID  // whose message.started the reader got last
	closed         recent          // messages and runs whose late deltas are dropped
	pending        *delta          // text not delivered yet, to be joined with the next
	joined         strings.Builder // the text of pending, once it is of several pieces
	peers          peerTexts
	lookup         *lookup // in progress; nil = none
}

// textKey identifies a partial text.
type textKey struct {
	kind    core.EventType
	message core.MessageID
	call    string // whose arguments it is; empty = none
}

// deliveredText is how much of a text the reader has.
type deliveredText struct {
	run   core.RunID
	bytes int
}

// attempt is one execution of a run.
type attempt struct {
	run    core.RunID
	number int
}

// delta is an event with its data.
type delta struct {
	event  core.Event
	data   core.DeltaData
	intact bool // the event's own data equals data
}

// run watches until an error ends it; it never returns nil.
func (w *watcher) run(ctx context.Context, from core.Cursor) error {
	sub, err := w.feed.bus.Subscribe(sessionSubject(w.session))
	if err != nil {
		return fmt.Errorf("watch session %s: %w", w.session, err)
	}
	defer sub.Close()
	defer func() {
		if w.peers.inbox != nil {
			w.peers.inbox.Close()
		}
	}()
	if known, ok := w.feed.live.eventsAfter(w.session, w.wanted, from.After); ok && !from.Live {
		w.lastSeq = from.After
		if _, err = w.emitPage(known); err == nil { // they have no gap
			err = w.emitSnapshot(ctx)
		}
	} else {
		err = w.beginFromStore(ctx, from)
	}
	if err == nil {
		err = w.requestSnapshot(ctx)
	}
	if err != nil {
		return err
	}
	return w.followBus(ctx, sub)
}

// beginFromStore emits what the store has after the cursor, then the partial texts.
func (w *watcher) beginFromStore(ctx context.Context, from core.Cursor) error {
	newest, err := w.newestEvent(ctx)
	if err != nil {
		return err
	}
	w.lastSeq = max(from.After, 0)
	if from.Live {
		w.lastSeq = newest
	}
	if w.lastSeq > newest {
		if err := w.emitResync(newest); err != nil {
			return err
		}
	}
	return w.catchUp(ctx, newest)
}

// followBus delivers what the bus brings, until an error.
func (w *watcher) followBus(ctx context.Context, sub *Subscription) error {
	first := w.feed.poll
	if w.feed.runs != nil {
		first = answerTime // others hear of this watcher some time after it began
	}
	poll := time.NewTimer(first)
	defer poll.Stop()
	for {
		// Small pieces are joined as long as more is there to read: a reader that is
		// slower than the model gets fewer and larger ones.
		if w.pending != nil && (!sub.Waiting() || w.joined.Len() >= joinLimit) {
			if err := w.flushPending(); err != nil {
				return err
			}
		}
		var answers <-chan struct{} // nil if nothing was asked
		if w.peers.inbox != nil {
			answers = w.peers.inbox.Ready()
		}
		var err error
		select {
		case <-sub.Ready():
			var message *Message
			if message, err = sub.Take(); message != nil {
				err = w.handleMessage(ctx, message)
			}
		case <-answers:
			err = w.handleAnswer(ctx)
		case <-w.peers.deadline:
			err = w.stopWaitingForPeers(ctx)
		case <-poll.C:
			w.pollStore(ctx)
		case <-w.lookup.doneChan():
			err = w.handleLookup(ctx, w.lookup)
			w.lookup = nil
			poll.Reset(w.feed.poll)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// pollStore begins to check the store for events that the bus lost, and for the session's existence.
func (w *watcher) pollStore(ctx context.Context) {
	w.lookup = w.feed.lookups.addSession(context.WithoutCancel(ctx), w.session)
}

// handleLookup handles the result of a lookup, which may be slightly outdated.
func (w *watcher) handleLookup(ctx context.Context, g *lookup) error {
	newest, there := g.newest[w.session]
	err := g.err
	if err == nil && (!there || newest < w.lastSeq) { // gone, or looked at before the last event
		newest, err = w.newestEvent(ctx)
	}
	switch {
	case err != nil:
		return err
	case newest < w.lastSeq: // another database
		return w.resync(ctx)
	case newest > w.lastSeq:
		return w.replayMissed(ctx, newest)
	default:
		return w.emitSnapshot(ctx)
	}
}

func (w *watcher) handleMessage(ctx context.Context, message *Message) error {
	if message.signalsLoss() {
		w.pollStore(ctx)
		return nil
	}
	e, whole, err := message.decodeOnce()
	if err == nil && e.Seq > w.lastSeq {
		w.feed.observer.FanOut(time.Since(e.At))
	}
	switch {
	case err != nil:
		return err
	case e.Seq > w.lastSeq+1:
		return w.replayMissed(ctx, e.Seq)
	case e.Seq > w.lastSeq && !whole:
		return w.catchUp(ctx, e.Seq)
	case e.Seq > w.lastSeq:
		return w.emitEvent(e)
	case e.Seq > 0:
		return nil // the reader has it
	case e.Type == core.EventResync: // something happened to the session as a whole
		return w.resync(ctx)
	case e.Type.IsText():
		d := deltaOf(e)
		if d.data.Offset > w.delivered[keyOf(d)].bytes {
			// A piece was lost on the way, or the text began before this watcher did.
			if err := w.emitSnapshot(ctx); err != nil {
				return err
			}
		}
		if w.feed.runs != nil && d.data.Offset > w.delivered[keyOf(d)].bytes {
			w.bufferDelta(d)
			return w.requestSnapshot(ctx)
		}
		return w.deliverDelta(ctx, d)
	case e.Type == core.EventNodeStarted:
		return w.emitNode(e)
	default:
		return w.emitEvent(e)
	}
}
