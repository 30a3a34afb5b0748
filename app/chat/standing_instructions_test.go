package chat_test

import (
	"errors"
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
	compare.Error(t, "remove", core.ErrNotFound, h.RemoveInstruction(t.Context(), ann, id, core.NewID[core.InstructionID]()))
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
