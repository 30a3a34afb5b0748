package chat_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/chat"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// instructionsOf returns five instructions, the second of which was replaced.
func instructionsOf(_ string, session core.SessionID) []core.StandingInstruction {
	var all []core.StandingInstruction
	for n := range 5 {
		all = append(all, core.StandingInstruction{ID: core.InstructionID(fmt.Sprint(n + 1)), SessionID: session, State: core.InstructionStands})
	}
	all[1].State = core.InstructionReplaced
	return all
}

// byHand is an instructionStore that says what it was asked.
type byHand struct{}

func (byHand) Add(_ context.Context, _ core.Tenant, in core.NewInstruction) (core.StandingInstruction, error) {
	return core.StandingInstruction{ID: "6", SessionID: in.SessionID, Text: in.Text, Topic: in.Topic}, nil
}

func (byHand) Edit(_ context.Context, _ core.Tenant, id core.InstructionID, in core.NewInstruction) (core.StandingInstruction, error) {
	return core.StandingInstruction{ID: id, SessionID: in.SessionID, Text: in.Text}, nil
}

func (byHand) Remove(_ context.Context, _ core.Tenant, _ core.SessionID, id core.InstructionID) error {
	return core.Errorf(core.ErrNotFound, "standing instruction %s does not exist", id)
}

func TestStandingInstructionsArePaged(t *testing.T) {
	t.Parallel()
	h := chat.New(chat.Options{ContextPlanner: keeper{}, Instructions: byHand{}})
	var got []string
	q := core.PageQuery{Limit: 2}
	for {
		page := must.Get(h.StandingInstructions(t.Context(), ann, "s", q))(t)
		for _, i := range page.Items {
			got = append(got, string(i.ID))
		}
		if page.NextCursor == nil {
			break
		}
		q.Cursor = *page.NextCursor
	}
	compare.Equal(t, "got: want the newest first", []string{"5", "4", "3", "2", "1"}, got)
	q.Cursor = "x"
	compare.Error(t, "a cursor of another list", core.ErrInvalid, compare.ErrorOf(h.StandingInstructions(t.Context(), ann, "s", q)))
}

func TestInstructionTexts(t *testing.T) {
	t.Parallel()
	h := chat.New(chat.Options{ContextPlanner: keeper{}, Instructions: byHand{}})
	for _, tt := range []struct {
		name, text, want string
		kind             error
	}{
		{"one line", "Be\n brief.\r\n", "Be brief.", nil},
		{"as long as allowed", strings.Repeat("é", 500), strings.Repeat("é", 500), nil},
		{"too long", strings.Repeat("é", 501), "", core.ErrInvalid},
		{"empty", " \n", "", core.ErrInvalid},
	} {
		for what, do := range map[string]func() (core.StandingInstruction, error){
			"add": func() (core.StandingInstruction, error) {
				return h.AddInstruction(t.Context(), ann, "s", tt.text)
			},
			"edit": func() (core.StandingInstruction, error) {
				return h.EditInstruction(t.Context(), ann, "s", "1", tt.text)
			},
		} {
			got, err := do()
			if got.Text != tt.want || !errors.Is(err, tt.kind) || err == nil && got.State != core.InstructionStands {
				t.Errorf("%s, %s: got %+v, %v, want %q, %v", what, tt.name, got, err, tt.want, tt.kind)
			}
		}
	}
	if _, err := h.EditInstruction(t.Context(), ann, "s", "2", "Be brief."); !errors.Is(err, core.ErrUnprocessable) || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("edit one that was replaced: got %v", err)
	}
	compare.Error(t, "remove", core.ErrNotFound, h.Instructions.Remove(t.Context(), ann, "s", "9"))
}
