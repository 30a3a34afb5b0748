package branches_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

var tenant = core.Tenant{Owner: owner}

// step does one thing to one of the sessions and returns its name.
func (w *world) step() string {
	k := w.talks[w.rand.IntN(len(w.talks))]
	names := []string{
		"send", "send", "send", "send", "send", "send", "edit", "edit", "after", "after", "regenerate", "regenerate", "select", "select", "select",
		"delete", "revise", "pin", "unpin", "fork", "summarize", "summarize", "interrupt", "busy",
	}
	name := names[w.rand.IntN(len(names))]
	if len(k.known) == 0 {
		name = "send"
	}
	w.trace = append(w.trace, fmt.Sprintf("%d: %s", slices.Index(w.talks, k)+1, name))
	w.mood()
	w.do(k, name)
	return name
}

// do carries a step out.
func (w *world) do(k *talk, name string) {
	w.t.Helper()
	switch name {
	case "send":
		w.send(k)
	case "edit":
		w.edit(k, "")
	case "after":
		w.after(k, "")
	case "regenerate":
		w.regenerate(k, "")
	case "select":
		w.choose(k)
	case "delete":
		w.delete(k)
	case "revise":
		w.revise(k)
	case "pin", "unpin":
		w.pin(k, name == "pin")
	case "fork":
		w.fork(k)
	case "summarize":
		w.summarize(k)
	case "interrupt":
		w.interrupt(k)
	case "busy":
		w.busy(k)
	}
}

// mood decides what the model does in the next run.
func (w *world) mood() {
	w.moods = nil
	if w.rand.IntN(4) == 0 { // a long loop, which is compacted
		w.moods = slices.Repeat([]string{"tools"}, 2+w.rand.IntN(5))
	}
	for range w.rand.IntN(3) {
		w.moods = append(w.moods, []string{"tools", "tools", "", "die", "fail"}[w.rand.IntN(5)])
	}
	if w.rand.IntN(15) == 0 {
		w.deadline = 2
	}
}

func (w *world) message() string {
	if w.rand.IntN(12) == 0 {
		return w.text(1500)
	}
	return w.text(10 + w.rand.IntN(120))
}

// send sends a message, which goes on where the path ends.
func (w *world) send(k *talk) {
	a, err := w.chat.Send(w.t.Context(), tenant, core.SendMessage{SessionID: k.id, Content: w.message()})
	w.accepted(k, a, err)
	k.path = append(k.path, a.Message.ID)
	w.drive(k)
}

// accepted wants a run to be accepted.
func (w *world) accepted(k *talk, a core.Accepted, err error) {
	w.t.Helper()
	must.True(w.t, err == nil, "accept: %v\n%v", err, w.trace)
	k.question = a.Run.UserMessageID
}

// drive executes the run that was started, again when its process died, to its end.
func (w *world) drive(k *talk) {
	w.t.Helper()
	must.True(w.t, len(w.started) == 1, "got %d runs started, want one\n%v", len(w.started), w.trace)
	run := w.started[0]
	w.started, w.asked = nil, k
	for {
		ctx, die := context.WithCancel(w.t.Context())
		w.die = die
		err := w.engine.Execute(ctx, core.Claimed{Run: run})
		dead := ctx.Err() != nil
		die()
		if !dead {
			w.end(run, err)
			break
		}
		must.Do(w.t, w.runs.Release(w.t.Context(), worker))
		runs, err := w.runs.TakeOver(w.t.Context(), core.TakeOver{Worker: worker, Limit: 10})
		if last, found := w.runs.Get(w.t.Context(), tenant, run.ID); err == nil && found == nil && len(runs) == 0 && last.Status.Ended() {
			break // it died after the end of the run
		}
		must.True(w.t, err == nil && len(runs) == 1 && runs[0].Attempt == run.Attempt+1, "take over: got %+v and %v, want the run\n%v", runs, err, w.trace)
		run = runs[0]
	}
	w.asked = nil
	w.extend(k)
}

// end ends a run that failed, as runs.Runner would.
func (w *world) end(run core.Run, failed error) {
	w.t.Helper()
	if failed == nil {
		return
	}
	w.finish(run, core.RunWrite{End: &core.RunEnd{Status: core.RunFailed, Error: &core.RunError{Code: "x", Message: "x"}}})
}

// finish writes the end of a run, with results for the calls that have none.
func (w *world) finish(run core.Run, write core.RunWrite) {
	w.t.Helper()
	write.RunID, write.SessionID, write.Attempt = run.ID, run.SessionID, run.Attempt
	if _, err := w.runs.Write(w.t.Context(), write); err != nil {
		w.t.Fatalf("end of the run: %v\n%v", err, w.trace)
	}
}

// extend appends to the path what the run wrote.
func (w *world) extend(k *talk) {
	for _, m := range w.rows(k.id) {
		if _, ok := k.known[m.ID]; !ok && !slices.Contains(k.path, m.ID) {
			k.path = append(k.path, m.ID)
		}
	}
}

// pick returns a message of those that fit; nil if there is none. Every second time
// it is one of the current path, which has most of them in front of the cursor.
func (w *world) pick(k *talk, fits func(core.Message) bool) *core.Message {
	var all []core.Message
	onPath := w.rand.IntN(2) == 0
	for _, m := range w.rows(k.id) {
		if m.DeletedAt == nil && (m.OnPath || !onPath) && fits(m) {
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		return nil
	}
	if w.rand.IntN(3) == 0 { // one of the newest
		all = all[max(0, len(all)-3):]
	}
	return &all[w.rand.IntN(len(all))]
}

func anything(core.Message) bool { return true }

func question(m core.Message) bool { return m.Role == "user" }

// way returns the path to a message, as the test knows the tree.
func (k *talk) way(id core.MessageID) []core.MessageID {
	var way []core.MessageID
	for id != "" {
		way = append(way, id)
		id = core.MessageID(k.known[id].ParentID)
	}
	slices.Reverse(way)
	return way
}

// edit edits a user's message.
func (w *world) edit(k *talk, how core.Multitask) bool {
	m := w.pick(k, question)
	if m == nil {
		return false
	}
	a, err := w.chat.Send(w.t.Context(), tenant, core.SendMessage{SessionID: k.id, Edits: m.ID, Content: w.message(), Multitask: how})
	w.accepted(k, a, err)
	k.path = append(k.way(m.ParentID), a.Message.ID)
	if how == "" {
		w.drive(k)
	}
	return true
}

// after sends a message behind another one, or as the first of the conversation.
func (w *world) after(k *talk, how core.Multitask) bool {
	after, way := core.AfterStart, []core.MessageID(nil)
	if m := w.pick(k, anything); m != nil && w.rand.IntN(6) > 0 {
		after = m.ID
		way = k.way(after)
		for _, id := range k.atom(after) { // a call stays with its results
			if !slices.Contains(way, id) {
				way = append(way, id)
			}
		}
		slices.SortFunc(way, func(a, b core.MessageID) int { return int(k.known[a].Seq - k.known[b].Seq) })
	}
	a, err := w.chat.Send(w.t.Context(), tenant, core.SendMessage{SessionID: k.id, After: after, Content: w.message(), Multitask: how})
	w.accepted(k, a, err)
	k.path = append(way, a.Message.ID)
	if how == "" {
		w.drive(k)
	}
	return true
}

// regenerate has a message answered anew.
func (w *world) regenerate(k *talk, how core.Multitask) bool {
	m := w.pick(k, anything)
	if m == nil {
		return false
	}
	want := m.ID
	for k.known[want].Role != "user" {
		want = core.MessageID(k.known[want].ParentID)
	}
	a, err := w.chat.Regenerate(w.t.Context(), tenant, core.Regenerate{SessionID: k.id, MessageID: m.ID, Multitask: how})
	if k.deleted[want] {
		compare.True(w.t, errors.Is(err, core.ErrUnprocessable), "regenerate an answer without a question: got %v\n%v", err, w.trace)
		return false
	}
	w.accepted(k, a, err)
	compare.True(w.t, a.Message.ID == want && a.Message.Content == k.known[want].Content, "got the question %s, want %s\n%v", a.Message.ID, want, w.trace)
	k.path = k.way(want)
	if how == "" {
		w.drive(k)
	}
	return true
}

// choose selects a branch.
func (w *world) choose(k *talk) {
	m := w.pick(k, func(m core.Message) bool { return !m.OnPath })
	if m == nil {
		m = w.pick(k, anything)
	}
	if m == nil {
		return
	}
	if _, err := w.chat.Select(w.t.Context(), tenant, k.id, m.ID); err != nil {
		w.t.Fatalf("select: %v\n%v", err, w.trace)
	}
	if slices.Contains(k.path, m.ID) {
		return
	}
	leaf := m.ID
	for _, other := range w.rows(k.id) { // the newest below comes last
		if slices.Contains(k.way(other.ID), m.ID) {
			leaf = other.ID
		}
	}
	k.path = k.way(leaf)
}

// delete deletes a message; a call goes with its results.
func (w *world) delete(k *talk) {
	m := w.pick(k, anything)
	if m == nil {
		return
	}
	if err := w.chat.DeleteMessage(w.t.Context(), tenant, k.id, m.ID); err != nil {
		w.t.Fatalf("delete: %v\n%v", err, w.trace)
	}
	for _, id := range k.atom(m.ID) {
		k.deleted[id] = true
	}
	compare.Error(w.t, "delete again", nil, w.chat.DeleteMessage(w.t.Context(), tenant, k.id, m.ID))
}

// revise edits a user's message in place.
func (w *world) revise(k *talk) {
	m := w.pick(k, question)
	if m == nil {
		return
	}
	id := m.ID
	revised, err := w.chat.Revise(w.t.Context(), tenant, k.id, id, w.message())
	must.True(w.t, err == nil, "revise: %v\n%v", err, w.trace)
	k.replaced = append(k.replaced, k.known[id])
	was := k.known[id]
	was.Content = revised.Content
	k.known[id] = was
}

// atom returns a call with its results, or the message alone.
func (k *talk) atom(id core.MessageID) []core.MessageID {
	for k.known[id].Role == "tool" {
		id = core.MessageID(k.known[id].ParentID)
	}
	atom := []core.MessageID{id}
	for grown := true; grown; {
		grown = false
		for other, m := range k.known {
			if m.Role == "tool" && slices.Contains(atom, m.ParentID) && !slices.Contains(atom, other) {
				atom, grown = append(atom, other), true
			}
		}
	}
	return atom
}

// pin pins a message, or unpins it.
func (w *world) pin(k *talk, pinned bool) {
	m := w.pick(k, func(m core.Message) bool { return m.Pinned != pinned })
	if m == nil {
		return
	}
	_, err := w.chat.Pin(w.t.Context(), tenant, k.id, m.ID, pinned)
	if errors.Is(err, core.ErrContextFloor) && pinned {
		return
	}
	must.True(w.t, err == nil, "pin: %v\n%v", err, w.trace)
}

// fork copies a session; the copy takes part from then on.
func (w *world) fork(k *talk) {
	in := core.ForkSession{SessionID: k.id}
	want := k.path
	if m := w.pick(k, anything); m != nil && w.rand.IntN(3) > 0 {
		in.MessageID = m.ID
		want = k.way(in.MessageID)
		for _, id := range k.atom(in.MessageID) {
			if !slices.Contains(want, id) && k.known[in.MessageID].Seq < k.known[id].Seq {
				want = append(want, id)
			}
		}
	}
	made, err := w.chat.Fork(w.t.Context(), tenant, in)
	must.True(w.t, err == nil, "fork: %v\n%v", err, w.trace)
	copied := newTalk(made.ID)
	copied.partial = k.partial
	var texts, wanted []string
	for _, m := range w.rows(made.ID) {
		copied.path = append(copied.path, m.ID)
		texts = append(texts, m.Content+fmt.Sprint(m.ToolCalls))
	}
	slices.SortFunc(want, func(a, b core.MessageID) int { return int(k.known[a].Seq - k.known[b].Seq) })
	for _, id := range want {
		if !k.deleted[id] {
			wanted = append(wanted, k.known[id].Content+fmt.Sprint(k.known[id].ToolCalls))
		}
	}
	compare.True(w.t, slices.Equal(texts, wanted), "fork: got %d messages, want %d\n%v", len(texts), len(wanted), w.trace)
	w.check(copied, "fork")
	if len(w.talks) < 3 {
		w.talks = append(w.talks, copied)
	}
}

// summarize makes a summary by hand.
func (w *world) summarize(k *talk) {
	_, err := w.chat.Summarize(w.t.Context(), tenant, k.id, "")
	must.True(w.t, err == nil || errors.Is(err, core.ErrUnprocessable), "summarize: %v\n%v", err, w.trace)
}

// begin begins a run and does not execute it.
func (w *world) begin(k *talk) core.Run {
	w.t.Helper()
	a, err := w.chat.Send(w.t.Context(), tenant, core.SendMessage{SessionID: k.id, Content: w.message()})
	w.accepted(k, a, err)
	k.path = append(k.path, a.Message.ID)
	w.started = nil
	w.learn(k)
	return a.Run
}

// cancel ends a run in the middle of its answer.
func (w *world) cancel(run core.Run) {
	w.t.Helper()
	half := core.Message{
		ID: core.NewID[core.MessageID](), Role: core.RoleAssistant, Content: w.text(10), Status: core.MessagePartial, TokenCount: 30,
	}
	w.finish(run, core.RunWrite{Messages: []core.Message{half}, End: &core.RunEnd{Status: core.RunCanceled, AnswerID: half.ID}})
}

// interrupt edits, regenerates, or sends behind another message while a run is at work: it ends, and the branch
// begins then.
func (w *world) interrupt(k *talk) {
	run := w.begin(k)
	old := slices.Clone(k.path)
	began := []func(*talk, core.Multitask) bool{w.regenerate, w.edit, w.after}[w.rand.IntN(3)]
	ok := began(k, core.MultitaskInterrupt)
	path := k.path
	k.path = old
	w.cancel(run)
	w.extend(k)
	if !ok {
		return
	}
	w.learn(k)
	k.path = path
	claimed, err := w.runs.Claim(w.t.Context(), k.id, worker)
	must.True(w.t, err == nil && claimed.Message.OnPath, "claim: got %+v and %v, want a message on the path\n%v", claimed.Message, err, w.trace)
	w.started = []core.Run{claimed.Run}
	w.drive(k)
}

// busy tries what must be refused while a run is at work.
func (w *world) busy(k *talk) {
	run := w.begin(k)
	ctx := w.t.Context()
	m, off := w.pick(k, question), w.pick(k, func(m core.Message) bool { return !m.OnPath })
	var errs []error
	if off != nil && !off.OnPath {
		_, err := w.chat.Select(ctx, tenant, k.id, core.MessageID(off.ID))
		errs = append(errs, err)
	}
	if m != nil {
		_, err := w.chat.Send(ctx, tenant, core.SendMessage{SessionID: k.id, Edits: m.ID, Content: "no"})
		_, err2 := w.chat.Regenerate(ctx, tenant, core.Regenerate{SessionID: k.id, MessageID: m.ID})
		_, err3 := w.chat.Send(ctx, tenant, core.SendMessage{SessionID: k.id, After: m.ID, Content: "no"})
		errs = append(errs, err, err2, err3, w.chat.DeleteMessage(ctx, tenant, k.id, m.ID))
	}
	for i, err := range errs {
		compare.True(w.t, errors.Is(err, core.ErrConflict), "while busy, %d: got %v, want a conflict\n%v", i, err, w.trace)
	}
	w.cancel(run)
	w.extend(k)
}
