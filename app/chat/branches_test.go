package chat_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// branches is branches in storage that say what they were asked.
type branches struct {
	core.BranchStore

	message core.Message // what Get of messages answers
	forked  core.ForkSession
	pinned  bool
}

func (b *branches) Revise(_ context.Context, _ core.Tenant, in core.ReviseMessage) (core.Message, []core.Event, error) {
	return core.Message{Content: in.Content, TokenCount: in.TokenCount}, nil, nil
}

func (b *branches) Select(context.Context, core.Tenant, core.SessionID, core.MessageID) (core.Session, []core.Event, error) {
	return core.Session{Title: "selected"}, nil, nil
}

func (b *branches) UpdateMessage(_ context.Context, _ core.Tenant, _ core.SessionID, id core.MessageID, p core.MessagePatch) (core.Message, []core.Event, error) {
	return core.Message{ID: id, Metadata: p.Metadata, Feedback: p.Feedback}, nil, nil
}

func (b *branches) Pin(_ context.Context, _ core.Tenant, _ core.SessionID, id core.MessageID, pinned bool) (core.Message, []core.Event, error) {
	b.pinned = pinned
	return core.Message{ID: id, Pinned: pinned}, nil, nil
}

func (b *branches) Delete(_ context.Context, _ core.Tenant, _ core.SessionID, id core.MessageID) ([]core.Event, error) {
	if id == "busy" {
		return nil, core.Errorf(core.ErrConflict, "busy")
	}
	return nil, nil
}

func (b *branches) Fork(_ context.Context, _ core.Tenant, in core.ForkSession) (core.Session, error) {
	b.forked = in
	return core.Session{Title: in.Title}, nil
}

// log is the message log with the message of branches.
type log struct {
	core.MessageStore
	*branches
}

func (l log) Get(context.Context, core.Tenant, core.SessionID, core.MessageID) (core.Message, error) {
	return l.message, nil
}

// A branch cannot wait behind other messages: reject is the default, and enqueue
// is refused.
func TestBranchMultitask(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, talkUntilCanceled)
		edit := func(how core.Multitask) (core.Accepted, error) {
			return h.Send(t.Context(), ann, core.SendMessage{SessionID: h.session.ID, Content: "new", Edits: "m", Multitask: how})
		}
		regenerate := func(how core.Multitask) (core.Accepted, error) {
			return h.Regenerate(t.Context(), ann, core.Regenerate{SessionID: h.session.ID, MessageID: "m", Multitask: how})
		}
		for name, begin := range map[string]func(core.Multitask) (core.Accepted, error){"edit": edit, "regenerate": regenerate} {
			_, err := begin(core.MultitaskEnqueue)
			wantKind(t, err, core.ErrInvalid)
			_, err = begin("later")
			wantKind(t, err, core.ErrInvalid)
			first := h.send(t, "long")
			_, err = begin("")
			wantKind(t, err, core.ErrConflict)
			a, err := begin(core.MultitaskInterrupt)
			if err != nil || a.Run.Multitask != core.MultitaskInterrupt {
				t.Fatalf("%s: got %+v and %v, want it accepted", name, a.Run, err)
			}
			for _, id := range []core.RunID{first.Run.ID, a.Run.ID} {
				compare.Error(t, name, nil, compare.ErrorOf(h.Wait(t.Context(), ann, core.Run{ID: id, SessionID: h.session.ID})))
			}
		}
	})
}

// The inputs of a new answer are checked like those of a message.
func TestRegenerateChecks(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, answer)
		for _, r := range []core.Regenerate{
			{Model: "hal"}, {ClientMessageID: strings.Repeat("x", 201)}, {User: strings.Repeat("u", 201)},
		} {
			r.SessionID, r.MessageID = h.session.ID, "m"
			_, err := h.Regenerate(t.Context(), ann, r)
			wantKind(t, err, core.ErrInvalid)
		}
		_, err := h.Regenerate(t.Context(), core.Tenant{Owner: "ann", User: "carol"}, core.Regenerate{SessionID: h.session.ID, User: "dora"})
		wantKind(t, err, core.ErrForbidden)
		_, err = h.Regenerate(t.Context(), ann, core.Regenerate{SessionID: core.NewID[core.SessionID]()})
		wantKind(t, err, core.ErrNotFound)
	})
}

// A pin must leave room, a fork's title stays within its limit.
func TestPinAndFork(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, answer)
		id := h.session.ID
		h.branches.message = core.Message{Content: strings.Repeat("x", 101)}
		_, err := h.Pin(t.Context(), ann, id, "m", true)
		wantKind(t, err, core.ErrContextFloor)
		for _, fits := range []core.Message{{Content: "x"}, {Content: strings.Repeat("x", 101), Pinned: true}} {
			h.branches.message = fits
			if m, err := h.Pin(t.Context(), ann, id, "m", true); err != nil || !m.Pinned || !h.branches.pinned {
				t.Errorf("pin %+v: got %+v and %v, want it pinned", fits, m, err)
			}
		}
		if m, err := h.Pin(t.Context(), ann, id, "m", false); err != nil || m.Pinned {
			t.Errorf("unpin: got %+v and %v", m, err)
		}
		wantKind(t, h.DeleteMessage(t.Context(), ann, id, "busy"), core.ErrConflict)
		compare.Error(t, "delete", nil, h.DeleteMessage(t.Context(), ann, id, "m"))
		compare.Equal(t, "select: s.Title", "selected", must.Get(h.Select(t.Context(), ann, id, "m"))(t).Title)
		for title, want := range map[string]string{"": "", "a talk": "a talk (fork)", strings.Repeat("ä", 250): strings.Repeat("ä", 246) + " (fork)"} {
			must.Get(h.UpdateSession(t.Context(), ann, id, core.SessionPatch{Title: &title}))(t)
			compare.Equal(t, fmt.Sprintf("fork of %.20q: s.Title", title), want, must.Get(h.Fork(t.Context(), ann, core.ForkSession{SessionID: id}))(t).Title)
		}
		_, err = h.Fork(t.Context(), ann, core.ForkSession{SessionID: core.NewID[core.SessionID]()})
		wantKind(t, err, core.ErrNotFound)
	})
}

// An edit in place has the rules of sending; coretest.TestRevisions has what storage refuses.
func TestRevise(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, answer)
		m, err := h.Revise(t.Context(), ann, h.session.ID, "m", "hello\x00 there")
		if err != nil || m.Content != "hello\uFFFD there" || m.TokenCount != len(m.Content) {
			t.Errorf("got %+v and %v, want the text as it is sent", m, err)
		}
		_, err = h.Revise(t.Context(), ann, h.session.ID, "m", strings.Repeat("x", 1<<20+1))
		wantKind(t, err, core.ErrTooLarge)
		_, err = h.Revise(t.Context(), ann, h.session.ID, "m", " \n")
		wantKind(t, err, core.ErrInvalid)
	})
}
