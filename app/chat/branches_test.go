package chat_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// Instructions are one line within a limit; one that another has replaced is not edited.
func TestStandingInstructions(t *testing.T) {
	t.Parallel()
	h, id := openService(t, dbtest.SQLite(t))
	replaced := must.Get(h.AddInstruction(t.Context(), ann, id, "My budget is 400 €."))(t)
	for _, tt := range []struct {
		name, text, want string
		kind             error
	}{
		{"one line", "My budget\n is 500 €.\r\n", "My budget is 500 €.", nil},
		{"as long as allowed", strings.Repeat("é", 500), strings.Repeat("é", 500), nil},
		{"too long", strings.Repeat("é", 501), "", core.ErrInvalid},
		{"empty", " \n", "", core.ErrInvalid},
	} {
		added, err := h.AddInstruction(t.Context(), ann, id, tt.text)
		other := must.Get(h.AddInstruction(t.Context(), ann, id, "Never mention Berlin."))(t)
		edited, failed := h.EditInstruction(t.Context(), ann, id, other.ID, tt.text)
		for what, got := range map[string]core.StandingInstruction{"add": added, "edit": edited} {
			if got.Text != tt.want || !errors.Is(err, tt.kind) || !errors.Is(failed, tt.kind) || err == nil && got.State != core.InstructionStands {
				t.Errorf("%s, %s: got %+v, %v, %v, want %q, %v", what, tt.name, got, err, failed, tt.want, tt.kind)
			}
		}
	}
	if _, err := h.EditInstruction(t.Context(), ann, id, replaced.ID, "Be brief."); !errors.Is(err, core.ErrUnprocessable) || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("edit one that was replaced: got %v", err)
	}
	compare.Error(t, "remove", core.ErrNotFound, h.Instructions.Remove(t.Context(), ann, id, core.NewID[core.InstructionID]()))
}

// A list is read in pages, the newest first.
func TestStandingInstructionsArePaged(t *testing.T) {
	t.Parallel()
	h, id := openService(t, dbtest.SQLite(t))
	want := []string{"Never mention Rome.", "Never mention Paris.", "Never mention Berlin."}
	for i := range want {
		must.Get(h.AddInstruction(t.Context(), ann, id, want[len(want)-1-i]))(t)
	}
	var got []string
	q := core.PageQuery{Limit: 2}
	for {
		page := must.Get(h.StandingInstructions(t.Context(), ann, id, q))(t)
		for _, i := range page.Items {
			got = append(got, i.Text)
		}
		if page.NextCursor == nil {
			break
		}
		q.Cursor = *page.NextCursor
	}
	compare.Equal(t, "got: want the newest first", want, got)
	q.Cursor = "x"
	compare.Error(t, "a cursor of another list", core.ErrInvalid, compare.ErrorOf(h.StandingInstructions(t.Context(), ann, id, q)))
}

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
