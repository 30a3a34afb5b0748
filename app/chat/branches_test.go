package chat_test

import (
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// A branch cannot wait behind other messages: reject is the default, and enqueue
// is refused.
func TestBranchMultitask(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, talkUntilCanceled)
		edit := func(how core.Multitask) (core.Accepted, error) {
			return h.Send(t.Context(), ann, core.SendMessage{SessionID: h.session.ID, Content: "new", Parts: []core.Part{}, Edits: "m", Multitask: how})
		}
		regenerate := func(how core.Multitask) (core.Accepted, error) {
			return h.Regenerate(t.Context(), ann, core.Regenerate{SessionID: h.session.ID, MessageID: "m", Multitask: how})
		}
		for name, begin := range map[string]func(core.Multitask) (core.Accepted, error){"edit": edit, "regenerate": regenerate} {
			wantKind(t, compare.ErrorOf(begin(core.MultitaskEnqueue)), core.ErrInvalid)
			wantKind(t, compare.ErrorOf(begin("later")), core.ErrInvalid)
			first := h.send(t, "long")
			wantKind(t, compare.ErrorOf(begin("")), core.ErrConflict)
			a, err := begin(core.MultitaskInterrupt)
			must.True(t, err == nil && a.Run.Multitask == core.MultitaskInterrupt, "%s: got %+v and %v, want it accepted", name, a.Run, err)
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
		for _, r := range []core.Regenerate{{Model: "hal"}, {ClientMessageID: strings.Repeat("x", 201)}, {User: strings.Repeat("u", 201)}} {
			r.SessionID, r.MessageID = h.session.ID, "m"
			wantKind(t, compare.ErrorOf(h.Regenerate(t.Context(), ann, r)), core.ErrInvalid)
		}
		wantKind(t, compare.ErrorOf(h.Regenerate(t.Context(), core.Tenant{Owner: "ann", User: "carol"}, core.Regenerate{SessionID: h.session.ID, User: "dora"})), core.ErrForbidden)
		wantKind(t, compare.ErrorOf(h.Regenerate(t.Context(), ann, core.Regenerate{SessionID: core.NewID[core.SessionID]()})), core.ErrNotFound)
	})
}

// A pin must leave room, a fork's title stays within its limit, and an edit in place has the rules of
// sending; coretest.TestRevisions has what storage refuses.
func TestPinForkAndRevise(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	h, id := openService(t, d)
	appended := must.Get(h.Messages.Append(t.Context(), ann, core.AppendMessages{SessionID: id, Messages: []core.Message{
		{Role: core.RoleUser, Content: "small", TokenCount: 5}, {Role: core.RoleUser, Content: "large", TokenCount: 6000},
	}}))(t)
	small, large := appended.Messages[0].ID, appended.Messages[1].ID
	compare.Error(t, "a large one", core.ErrContextFloor, compare.ErrorOf(h.Pin(t.Context(), ann, id, large, true)))
	must.Get2(h.Branches.Pin(t.Context(), ann, id, large, true))(t)
	for _, c := range []struct {
		message core.MessageID
		pinned  bool
	}{{large, true}, {large, false}, {small, true}} { // one that is pinned already is not checked
		compare.Equal(t, fmt.Sprintf("pin %+v", c), c.pinned, must.Get(h.Pin(t.Context(), ann, id, c.message, c.pinned))(t).Pinned)
	}
	compare.Error(t, "delete", nil, h.DeleteMessage(t.Context(), ann, id, large))
	compare.Equal(t, "select: s.ID", id, must.Get(h.Select(t.Context(), ann, id, small))(t).ID)
	for title, want := range map[string]string{"": "", "a talk": "a talk (fork)", strings.Repeat("ä", 250): strings.Repeat("ä", 246) + " (fork)"} {
		must.Get(h.UpdateSession(t.Context(), ann, id, core.SessionPatch{Title: &title}))(t)
		compare.Equal(t, fmt.Sprintf("fork of %.20q: s.Title", title), want, must.Get(h.Fork(t.Context(), ann, core.ForkSession{SessionID: id}))(t).Title)
	}
	compare.Error(t, "fork of nothing", core.ErrNotFound, compare.ErrorOf(h.Fork(t.Context(), ann, core.ForkSession{SessionID: core.NewID[core.SessionID]()})))

	m := must.Get(h.Revise(t.Context(), ann, id, small, "hello\x00 there"))(t)
	compare.Equal(t, "the text as it is sent", []any{"hello\uFFFD there", len(m.Content)}, []any{m.Content, m.TokenCount})
	compare.Error(t, "revise: too large", core.ErrTooLarge, compare.ErrorOf(h.Revise(t.Context(), ann, id, small, strings.Repeat("x", 101))))
	compare.Error(t, "revise: blank", core.ErrInvalid, compare.ErrorOf(h.Revise(t.Context(), ann, id, small, " \n")))
}
