package chat_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
)

// An edit in place changes the message for whoever watches, by the rules of sending, and
// nothing runs. It is refused while a run is at work or the message is queued.
func TestRevise(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, talkUntilCanceled)
		id := h.session.ID
		first := h.send(t, "hello")
		if _, err := h.Wait(t.Context(), ann, first.Run.ID); err != nil {
			t.Fatal(err)
		}
		question := first.Run.UserMessageID
		before, err := h.db.Events.Last(t.Context(), ann, id)
		if err != nil {
			t.Fatal(err)
		}
		m, err := h.Revise(t.Context(), ann, id, question, "hello\x00 there")
		if err != nil || m.Content != "hello\uFFFD there" || m.TokenCount != len(m.Content) || len(m.Revisions) != 1 || m.Revisions[0].Content != "hello" {
			t.Errorf("got %+v and %v, want the text as it is sent, and the old one", m, err)
		}
		if _, err := h.Revise(t.Context(), ann, id, question, m.Content); err != nil {
			t.Errorf("the same text: %v", err)
		}
		var types []core.EventType
		for e, err := range h.Watch(t.Context(), ann, id, core.Cursor{After: before}) {
			if err != nil {
				t.Fatal(err)
			}
			if types = append(types, e.Type); e.Type == core.EventSessionUpdated {
				break
			}
		}
		if len(types) != 2 || types[0] != core.EventMessageUpdated {
			t.Errorf("watchers got %v, want message.updated and session.updated", types)
		}
		h.wantTexts(t, m.Content, "re: hello")

		_, err = h.Revise(t.Context(), ann, id, question, strings.Repeat("x", 1<<20+1))
		wantKind(t, err, core.ErrTooLarge)
		_, err = h.Revise(t.Context(), ann, id, question, " \n")
		wantKind(t, err, core.ErrInvalid)
		_, err = h.Revise(t.Context(), ann, id, core.NewID[core.MessageID](), "x")
		wantKind(t, err, core.ErrNotFound)

		long, queued := h.send(t, "long"), h.send(t, "queued")
		for _, m := range []core.MessageID{question, long.Run.UserMessageID, queued.Run.UserMessageID} {
			_, err := h.Revise(t.Context(), ann, id, m, "changed")
			wantKind(t, err, core.ErrConflict)
		}
		if _, err := h.Cancel(t.Context(), ann, long.Run.ID, true); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Wait(t.Context(), ann, queued.Run.ID); err != nil {
			t.Fatal(err)
		}
		if runs := h.db.RunsOf(id); len(runs) != 3 {
			t.Errorf("got %d runs, want those of the messages that were sent", len(runs))
		}
	})
}
