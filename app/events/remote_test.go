package events_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/events"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// oneRun is a store with one run at work.
type oneRun struct {
	core.RunStore

	mu  sync.Mutex
	run core.Run // guarded by mu
	err error    // guarded by mu
}

func (o *oneRun) Active(context.Context, core.Tenant, core.SessionID) (core.Run, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && o.run.ID == "" {
		return core.Run{}, core.Errorf(core.ErrNotFound, "session has no active run")
	}
	return o.run, o.err
}

func (o *oneRun) set(run core.Run) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.run = run
}

// pair is two replicas on one database, in a bubble of synctest.
type pair struct {
	owner, other *events.Feed
	bus          events.Bus
	store        *memory
	runs         *oneRun
	serve        func() // the owner answers from now on
}

func newPair(t *testing.T) *pair {
	t.Helper()
	bus, logger := events.Wire{Local: events.NewLocal(0)}, slog.New(slog.DiscardHandler)
	p := &pair{bus: bus, store: &memory{}, runs: &oneRun{run: core.Run{ID: "r1", SessionID: session, Status: core.RunRunning, Attempt: 1}}}
	p.owner, p.other = events.NewShared(bus, p.store, p.runs, logger), events.NewShared(bus, p.store, p.runs, logger)
	p.owner.Begin(p.runs.run)
	p.serve = func() {
		ctx, stop := context.WithCancel(context.Background())
		var done sync.WaitGroup
		done.Go(func() {
			compare.Error(t, "serve", nil, p.owner.Serve(ctx))
		})
		t.Cleanup(func() {
			stop()
			done.Wait()
		})
		synctest.Wait()
	}
	return p
}

// reader collects what a watcher of the other replica gets.
type reader struct {
	mu     sync.Mutex
	text   map[core.EventType]string // guarded by mu
	order  []core.EventType          // guarded by mu
	events []core.Event              // guarded by mu; the durable ones
	err    error                     // guarded by mu
}

func (p *pair) watch(t *testing.T) *reader {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &reader{text: map[core.EventType]string{}}
	var done sync.WaitGroup
	done.Go(func() {
		for e, err := range p.other.Watch(ctx, tenant, session, core.Cursor{}) {
			r.take(t, e, err)
		}
	})
	t.Cleanup(func() {
		stop()
		done.Wait()
	})
	synctest.Wait()
	return r
}

func (r *reader) take(t *testing.T, e core.Event, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.err = err
		return
	}
	if e.Seq > 0 {
		r.events = append(r.events, e)
		return
	}
	d, ok := e.Data.(core.DeltaData)
	compare.True(t, ok || e.Type == core.EventMessageStarted, "the data of %s are %T", e.Type, e.Data)
	compare.True(t, d.Offset == len(r.text[e.Type]), "got %s at offset %d after %d bytes: a gap or a repetition", e.Type, d.Offset, len(r.text[e.Type]))
	r.text[e.Type] += d.Text
	r.order = append(r.order, e.Type)
}

func (r *reader) want(t *testing.T, kind core.EventType, want string) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := r.text[kind]; got != want {
		t.Fatalf("got %s of %d bytes %.80q, want %d bytes %.80q", kind, len(got), got, len(want), want)
	}
}

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

// TestSavedTextStandsIn: when the owner does not answer, what the run has saved counts,
// and what came live meanwhile follows it.
func TestSavedTextStandsIn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPair(t)
		p.owner.Delta(t.Context(), textDelta("m1", 0, "Hello "))
		partial := must.Get(core.Draft{Attempt: 1, MessageID: "m1", Text: "Hello "}.Encode())(t)
		run := p.runs.run
		run.Partial = partial
		p.runs.set(run)
		r := p.watch(t)
		p.owner.Delta(t.Context(), textDelta("m1", 6, "world"))
		r.want(t, core.EventMessageDelta, "")
		<-time.After(time.Second)
		r.want(t, core.EventMessageDelta, "Hello world")
		p.owner.Delta(t.Context(), textDelta("m1", 11, "!"))
		r.want(t, core.EventMessageDelta, "Hello world!")
	})
}

// TestTextOfALostAttempt: text that a process publishes for a run that another one owns by now
// is not shown, neither live nor from a snapshot nor as saved.
func TestTextOfALostAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPair(t)
		p.serve()
		partial := must.Get(core.Draft{Attempt: 1, MessageID: "m1", Text: "lost"}.Encode())(t)
		p.runs.set(core.Run{ID: "r1", SessionID: session, Status: core.RunRunning, Attempt: 2, Partial: partial})
		p.owner.Delta(t.Context(), textDelta("m1", 0, "lost"))
		r := p.watch(t)
		p.owner.Delta(t.Context(), textDelta("m1", 4, " too"))
		<-time.After(2 * time.Second)
		r.want(t, core.EventMessageDelta, "")
		p.owner.Delta(t.Context(), event(core.EventMessageDelta, core.DeltaData{MessageID: "m2", Attempt: 2, Text: "anew"}))
		r.want(t, core.EventMessageDelta, "anew")
		p.runs.set(core.Run{})
		p.owner.Delta(t.Context(), event(core.EventMessageDelta, core.DeltaData{MessageID: "m3", Attempt: 3, Text: "of nobody"}))
		r.want(t, core.EventMessageDelta, "anew")
	})
}

// TestLargeEventsCross: what the bus cannot carry is read from the store.
func TestLargeEventsCross(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPair(t)
		r := p.watch(t)
		large := p.store.commit(created("m1", strings.Repeat("x", 3<<20)))
		p.owner.Publish(t.Context(), []core.Event{large})
		synctest.Wait()
		// cmp.Diff takes half a minute for so much, with the race detector.
		compare.True(t, len(r.events) == 1 && r.events[0].Data.(core.MessageData).Message.Content == large.Data.(core.MessageData).Message.Content, "got %d events, want the large one", len(r.events))
	})
}

// TestLostWakeUpIsFound: an event that was published before anyone listened, or not at all, is
// read from the store within seconds.
func TestLostWakeUpIsFound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPair(t)
		r := p.watch(t)
		e := p.store.commit(started()) // and never published
		<-time.After(time.Second)
		synctest.Wait()
		compare.Equal(t, "events (-want +got)", "", cmp.Diff([]core.Event{e}, r.events))
	})
}

// TestEventsOfNewerVersions: a type that this version does not know, and data that it cannot
// decode, arrive as they are; a piece of text that is none ends the watch.
func TestEventsOfNewerVersions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPair(t)
		r := p.watch(t)
		unknown := p.store.commit(event("run.paused", json.RawMessage(`{"until":"noon"}`)))
		changed := p.store.commit(event(core.EventMessageCreated, json.RawMessage(`{"message":["m1"]}`)))
		p.owner.Publish(t.Context(), []core.Event{unknown, changed})
		synctest.Wait()
		compare.Equal(t, "events (-want +got)", "", cmp.Diff([]core.Event{unknown, changed}, r.events))
		broken := must.Get(json.Marshal(map[string]any{"s": session, "t": core.EventMessageDelta, "at": core.Now(), "d": []string{"x"}}))(t)
		must.Do(t, p.bus.Publish("session."+string(session), broken))
		synctest.Wait()
		compare.True(t, r.err != nil && strings.Contains(r.err.Error(), "message.delta"), "got error %v, want that the delta cannot be decoded", r.err)
	})
}

// TestTextOfAnotherReplica: a watcher that joins in the middle gets the partial text from the
// process that writes it, then continues without gap or repetition.
func TestTextOfAnotherReplica(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPair(t)
		p.serve()
		long := strings.Repeat("ä long text. ", 20_000) // several pieces
		p.owner.Delta(t.Context(), event(core.EventReasoningDelta, core.DeltaData{MessageID: "m1", Attempt: 1, Text: "hm"}))
		p.owner.Delta(t.Context(), textDelta("m1", 0, long))
		r := p.watch(t)
		r.want(t, core.EventReasoningDelta, "hm")
		r.want(t, core.EventMessageDelta, long)
		compare.True(t, r.order[0] == core.EventMessageStarted && r.order[1] == core.EventReasoningDelta, "got %v, want the message introduced, and the reasoning first", r.order)
		p.owner.Delta(t.Context(), textDelta("m1", len(long), "the end"))
		r.want(t, core.EventMessageDelta, long+"the end")
		<-time.After(time.Second) // the wait for answers is over: nothing comes twice
		r.want(t, core.EventMessageDelta, long+"the end")
	})
}

// lines are the first lines of a log.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}

// TestSignals: every process hears every signal, and of what it cannot read that there
// may be work; a closed bus is logged.
func TestSignals(t *testing.T) {
	onBuses(t, 0, func(t *testing.T, publish, listen closer) {
		sender := events.NewSignals(publish, slog.New(slog.DiscardHandler))
		log := make(lines, 1)
		receiver := events.NewSignals(listen, slog.New(slog.NewTextHandler(log, nil)))
		heard, done := make(chan core.Wakeup, 10_000), make(chan struct{})
		go func() {
			defer close(done)
			receiver.Listen(t.Context(), func(signal core.Wakeup) { heard <- signal })
		}()
		t.Cleanup(func() { <-done })
		again := time.NewTicker(5 * time.Millisecond)
		defer again.Stop()
		late := time.After(patience)
		for got := (core.Wakeup{}); got.Cancel == ""; {
			must.Do(t, publish.Publish("work", []byte("unreadable")))
			sender.Send(t.Context(), core.Wakeup{Cancel: "r1"})
			select {
			case got = <-heard:
				compare.True(t, got == (core.Wakeup{Cancel: "r1"}) || got == (core.Wakeup{Free: true}), "got %+v, want the cancel, or that there may be work", got)
			case <-again.C:
			case <-late:
				t.Fatal("nothing is heard")
			}
		}
		listen.Close()
		select {
		case got := <-log:
			compare.True(t, strings.Contains(got, "not received") && strings.Contains(got, events.ErrClosed.Error()), "got %q in the log, want %v", got, events.ErrClosed)
		case <-late:
			t.Error("a closed bus is not logged")
		}
	})
}
