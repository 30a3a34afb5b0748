package events

import (
	"context"

	"bobbin/app/core"
)

// emitNode tells the reader once which node the run executes.
func (w *watcher) emitNode(e core.Event) error {
	if w.closed.has(string(e.RunID)) || e.RunID == w.lastNode.RunID && e.At.Equal(w.lastNode.At) && nodeOf(e) == nodeOf(w.lastNode) {
		return nil
	}
	w.lastNode = e
	return w.emitEvent(e)
}

// emitEvent delivers the event to the reader, after the text that came before it.
func (w *watcher) emitEvent(e core.Event) error {
	if err := w.flushPending(); err != nil {
		return err
	}
	if e.Seq > 0 {
		w.lastSeq = e.Seq
	}
	if message := e.FinishedMessage(); message != "" {
		w.closeTexts(string(message), func(k textKey, _ deliveredText) bool { return k.message == message })
	}
	if e.Type.EndsRun() {
		w.closeTexts(string(e.RunID), func(_ textKey, g deliveredText) bool { return g.run == e.RunID })
	}
	if !w.yield(e) {
		return errReaderLeft
	}
	return nil
}

// closeTexts forgets the texts that match, and drops further ones with the id.
func (w *watcher) closeTexts(id string, match func(textKey, deliveredText) bool) {
	if id != "" && !w.closed.has(id) {
		if w.closed.ids == nil || len(w.closed.ids) == recentSize {
			w.closed.ids, w.closed.older = map[string]struct{}{}, w.closed.ids
		}
		w.closed.ids[id] = struct{}{}
	}
	for k, g := range w.delivered {
		if match(k, g) {
			delete(w.delivered, k)
		}
	}
}

// emitSnapshot delivers what the reader lacks of the node and the texts of a run that this process
// executes.
func (w *watcher) emitSnapshot(ctx context.Context) error {
	for _, e := range w.feed.live.snapshot(w.session) {
		var err error
		if e.Type.IsText() {
			err = w.deliverDelta(ctx, deltaOf(e))
		} else {
			err = w.emitNode(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deliverDelta delivers the part of the delta that the reader lacks. It drops text of a
// finished message or a lost attempt, and text that leaves an unfillable gap: message.created
// will bring the whole message.
func (w *watcher) deliverDelta(ctx context.Context, d delta) error {
	if w.closed.has(string(d.data.MessageID)) || w.closed.has(string(d.event.RunID)) {
		return nil
	}
	if w.lastWriter.run == d.event.RunID && d.data.Attempt < w.lastWriter.number {
		return nil
	}
	key := keyOf(d)
	have, end := w.delivered[key].bytes, d.data.Offset+len(d.data.Text)
	if d.data.Offset > have || end <= have {
		return nil
	}
	if holds, err := w.ownsRun(ctx, d); err != nil || !holds {
		return err
	}
	d.intact = d.intact && d.data.Offset == have
	d.data = d.data.From(have)
	w.delivered[key] = deliveredText{run: d.event.RunID, bytes: end}
	w.lastWriter = attempt{run: d.event.RunID, number: d.data.Attempt}
	if w.pending != nil && keyOf(*w.pending) == key {
		if w.pending.intact = false; w.joined.Len() == 0 {
			w.joined.WriteString(w.pending.data.Text)
		}
		w.joined.WriteString(d.data.Text)
		return nil
	}
	if err := w.flushPending(); err != nil {
		return err
	}
	if w.startedMessage != d.data.MessageID {
		w.startedMessage = d.data.MessageID
		e := core.NewEvent(w.session, d.event.RunID, core.EventMessageStarted, core.StartedData{
			MessageID: d.data.MessageID, Role: core.RoleAssistant, ParentID: d.data.ParentID, Attempt: d.data.Attempt,
		})
		e.At = d.event.At
		if !w.yield(e) {
			return errReaderLeft
		}
	}
	first := d // the parameter stays on the stack: most pieces are joined with an earlier one
	w.pending = &first
	return nil
}

// deltaOf returns the piece of text that the event brings.
func deltaOf(e core.Event) delta {
	data, _ := e.Data.(core.DeltaData)
	return delta{event: e, data: data, intact: true}
}

// nodeOf returns the data of a node.started.
func nodeOf(e core.Event) core.NodeData {
	data, _ := e.Data.(core.NodeData)
	return data
}

func keyOf(d delta) textKey {
	return textKey{kind: d.event.Type, message: d.data.MessageID, call: d.data.CallID()}
}

// flushPending delivers the pending text to the reader.
func (w *watcher) flushPending() error {
	if w.pending == nil {
		return nil
	}
	d := w.pending
	w.pending = nil
	if w.joined.Len() > 0 {
		d.data.Text = w.joined.String()
		w.joined.Reset()
	}
	e := d.event
	if !d.intact {
		e = e.WithData(d.data)
	}
	if !w.yield(e) {
		return errReaderLeft
	}
	return nil
}

// recentSize is how many ids recent keeps at least. When a message is known to be finished, at most
// defaultBuffer of its deltas can still arrive.
const recentSize = defaultBuffer

// recent is a bounded set that keeps the newest ids. The zero value is empty and ready to use.
type recent struct {
	ids, older map[string]struct{}
}

func (r *recent) has(id string) bool {
	_, isNew := r.ids[id]
	_, isOlder := r.older[id]
	return isNew || isOlder
}
