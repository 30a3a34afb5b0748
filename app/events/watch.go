package events

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"bobbin/app/core"
)

// joinLimit bounds the text that is joined before it is given to the reader, in bytes.
const joinLimit = 8 << 10

// errLeft: the reader left the loop.
var errLeft = errors.New("the reader left")

// Watch yields the events of a session: first the durable ones after
// from.After (with from.Live none), then the text so far of a message on its
// way, then everything as it happens. Durable events come in the order of their
// numbers, each once, without a gap. The texts of a message come in the order of
// their offsets without gap or overlap; several small ones may come as one. After
// a message.created or message.discarded, and after the end of its run, nothing
// more comes of that message's text.
//
// If the events after from.After are no longer kept, or from.After is a number
// that the session has not reached (another database), a resync event comes in
// place of what is missing, with the number of the newest event, and then what happens
// from now on.
//
// The sequence ends only by an error, which is its last element: ErrSlow for a
// reader that is too slow, core.ErrNotFound for a session outside the scope or one
// that was removed meanwhile, the cause of ctx's end, ErrClosed, or a fault of the
// store. It costs nothing until
// it is ranged over, and nothing once the loop is left.
func (f *Feed) Watch(
	ctx context.Context, scope core.Scope, session core.SessionID, from core.From,
) iter.Seq2[core.Event, error] {
	return func(yield func(core.Event, error) bool) {
		w := &watcher{
			feed: f, scope: scope, session: session, given: map[textKey]givenText{},
			yield: func(e core.Event) bool { return yield(e, nil) },
		}
		left := f.observer.Watching()
		err := w.run(ctx, from)
		left(err)
		if !errors.Is(err, errLeft) {
			yield(core.Event{}, err)
		}
	}
}

// watcher is the state of one Watch; its reader's goroutine owns it.
type watcher struct {
	feed    *Feed
	scope   core.Scope
	session core.SessionID
	yield   func(core.Event) bool

	seen    int64 // number of the last durable event that the reader has
	given   map[textKey]givenText
	writing attempt // that the reader last had text of
	over    recent  // messages and runs whose late deltas are dropped
	pending *delta  // text that is not given yet, to be joined with the next
	remote  remote
	glance  *glance // that is not over; nil = none
}

// textKey names a text on its way.
type textKey struct {
	kind    core.EventType
	message core.MessageID
}

// givenText is how much of a text the reader has.
type givenText struct {
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
	intact bool // the event says what data does
}

// run does everything; it never returns nil.
func (w *watcher) run(ctx context.Context, from core.From) error {
	newest, err := w.feed.store.Last(ctx, w.scope, w.session)
	if err != nil {
		return fmt.Errorf("watch session %s: %w", w.session, err)
	}
	sub, err := w.feed.bus.Subscribe(subject(w.session))
	if err != nil {
		return fmt.Errorf("watch session %s: %w", w.session, err)
	}
	defer sub.Close()
	defer w.remote.close()

	w.seen = max(from.After, 0)
	if from.Live {
		w.seen = newest
	}
	if w.seen > newest {
		if err := w.resync(newest); err != nil {
			return err
		}
	}
	if err := w.catchUp(ctx, newest); err != nil {
		return err
	}
	if err := w.join(ctx); err != nil {
		return err
	}
	return w.follow(ctx, sub)
}

// follow gives on what the bus brings, until an error.
func (w *watcher) follow(ctx context.Context, sub Subscription) error {
	first := w.feed.poll
	if w.feed.runs != nil {
		first = askTime // others hear of this watcher some time after it began
	}
	poll := time.NewTimer(first)
	defer poll.Stop()
	for {
		// Small pieces are joined as long as more is there to read: a reader that is
		// slower than the model gets fewer and larger ones.
		if w.pending != nil && (!sub.Waiting() || len(w.pending.data.Text) >= joinLimit) {
			if err := w.flush(); err != nil {
				return err
			}
		}
		var err error
		select {
		case <-sub.Ready():
			err = w.next(ctx, sub)
		case <-w.remote.answers():
			err = w.answered(ctx)
		case <-w.remote.asked:
			err = w.giveUp(ctx)
		case <-poll.C:
			w.glance = w.feed.looks.join(context.WithoutCancel(ctx), w.session)
		case <-w.glance.over():
			err = w.looked(ctx, w.glance)
			w.glance = nil
			poll.Reset(w.feed.poll)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// next handles a message of the bus, if there is one.
func (w *watcher) next(ctx context.Context, sub Subscription) error {
	message, err := sub.Take()
	if err != nil || message == nil {
		return err
	}
	return w.receive(ctx, message)
}

// look asks the store for what the bus lost, and whether the session is still there.
func (w *watcher) look(ctx context.Context) error {
	g := w.feed.looks.join(context.WithoutCancel(ctx), w.session)
	select {
	case <-g.over():
		return w.looked(ctx, g)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// looked handles what a glance has seen, which may be a little while ago.
func (w *watcher) looked(ctx context.Context, g *glance) error {
	newest, there, err := g.of(w.session)
	if err == nil && (!there || newest < w.seen) { // gone, or looked at before the last event
		newest, err = w.feed.store.Last(ctx, w.scope, w.session)
	}
	switch {
	case err != nil:
		return fmt.Errorf("newest event of session %s: %w", w.session, err)
	case newest < w.seen: // another database
		return w.skip(ctx)
	case newest > w.seen:
		return w.find(ctx, newest)
	default:
		return w.snapshot(ctx)
	}
}

// receive handles one message of the bus.
func (w *watcher) receive(ctx context.Context, message *Message) error {
	if len(message.Data()) == 0 {
		return w.look(ctx)
	}
	e, whole, err := message.decode()
	if err == nil && e.Seq > w.seen {
		w.feed.observer.FanOut(time.Since(e.At))
	}
	switch {
	case err != nil:
		return err
	case e.Seq > w.seen+1:
		return w.find(ctx, e.Seq)
	case e.Seq > w.seen && !whole:
		return w.catchUp(ctx, e.Seq)
	case e.Seq > w.seen:
		return w.emit(e)
	case e.Seq > 0:
		return nil // the reader has it
	case e.Type == core.EventResync: // something happened to the session as a whole
		return w.skip(ctx)
	case isText(e.Type):
		return w.text(ctx, delta{event: e, data: message.delta, intact: true})
	default:
		return w.emit(e)
	}
}

// emit gives the event to the reader, after the text that came before it.
func (w *watcher) emit(e core.Event) error {
	if err := w.flush(); err != nil {
		return err
	}
	if e.Seq > 0 {
		w.seen = e.Seq
	}
	if message := finished(e); message != "" {
		w.close(string(message), func(k textKey, _ givenText) bool { return k.message == message })
	}
	if endsRun(e.Type) {
		w.close(string(e.RunID), func(_ textKey, g givenText) bool { return g.run == e.RunID })
	}
	if !w.yield(e) {
		return errLeft
	}
	return nil
}

// close forgets the texts that match, and lets no more of them through.
func (w *watcher) close(id string, match func(textKey, givenText) bool) {
	w.over.add(id)
	for k, g := range w.given {
		if match(k, g) {
			delete(w.given, k)
		}
	}
}

// text takes a piece of a message on its way.
func (w *watcher) text(ctx context.Context, d delta) error {
	if d.data.Offset > w.given[keyOf(d)].bytes {
		// A piece was lost on the way, or the text began before this watcher did.
		if err := w.snapshot(ctx); err != nil {
			return err
		}
	}
	if w.feed.runs != nil && d.data.Offset > w.given[keyOf(d)].bytes {
		w.hold(d)
		return w.join(ctx)
	}
	return w.give(ctx, d)
}

// snapshot gives what is missing of the texts on their way in this process.
func (w *watcher) snapshot(ctx context.Context) error {
	for _, t := range w.feed.texts.of(w.session) {
		data := core.DeltaData{MessageID: t.message, Attempt: t.attempt, Text: t.content}
		e := core.Event{SessionID: w.session, RunID: t.run, Type: t.kind, At: core.Now()}
		if err := w.give(ctx, delta{event: e, data: data}); err != nil {
			return err
		}
	}
	return nil
}

// give takes the part of the delta that the reader does not have yet. It drops
// what is of a finished message or a lost attempt, and what leaves a gap that
// nobody can fill: message.created will bring the whole.
func (w *watcher) give(ctx context.Context, d delta) error {
	if w.over.has(string(d.data.MessageID)) || w.over.has(string(d.event.RunID)) {
		return nil
	}
	if w.writing.run == d.event.RunID && d.data.Attempt < w.writing.number {
		return nil
	}
	key := keyOf(d)
	have, end := w.given[key].bytes, d.data.Offset+len(d.data.Text)
	if d.data.Offset > have || end <= have {
		return nil
	}
	if holds, err := w.holds(ctx, d); err != nil || !holds {
		return err
	}
	d.intact = d.intact && d.data.Offset == have
	d.data.Text, d.data.Offset = d.data.Text[have-d.data.Offset:], have
	w.given[key] = givenText{run: d.event.RunID, bytes: end}
	w.writing = attempt{run: d.event.RunID, number: d.data.Attempt}
	if w.pending != nil && keyOf(*w.pending) == key {
		w.pending.data.Text += d.data.Text
		w.pending.intact = false
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.pending = &d
	return nil
}

func keyOf(d delta) textKey { return textKey{kind: d.event.Type, message: d.data.MessageID} }

// flush gives the pending text to the reader.
func (w *watcher) flush() error {
	if w.pending == nil {
		return nil
	}
	d := w.pending
	w.pending = nil
	e := d.event
	if !d.intact {
		e = core.NewEvent(w.session, d.event.RunID, d.event.Type, d.data)
		e.At = d.event.At
	}
	if !w.yield(e) {
		return errLeft
	}
	return nil
}
