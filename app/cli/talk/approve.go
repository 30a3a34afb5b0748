package talk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"bobbin/app/cli/line"
	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// errUnanswered is what a conversation ends with when its run waits for an answer and
// there is nobody to give it.
var errUnanswered = core.Errorf(core.ErrUnavailable, "nobody said whether the tool may start; the run waits for that")

// question notes what the run asks for and what was decided of it, here or elsewhere.
func (v *view) question(e core.Event) {
	a := read[core.ApprovalData](e).Approval
	v.asked = slices.DeleteFunc(v.asked, func(b core.Approval) bool { return a.ID == b.ID })
	switch {
	case a.Status == core.ApprovalOpen:
		v.asked = append(v.asked, a)
	case a.Status != core.ApprovalApproved:
		v.note("%s: %s", a.Tool, a.Refusal())
	}
}

// answerQuestions asks the user for all that the run waits for. The error is why
// somebody else must answer.
func (v *view) answerQuestions(ctx context.Context) error {
	asked := v.asked
	v.asked = nil
	for _, a := range asked {
		d, err := v.ask(ctx, a)
		if errors.Is(err, line.ErrInterrupted) {
			_, err = v.c.Service.CancelRun(ctx, a.RunID, false)
			return err
		}
		if err != nil {
			return err
		}
		// The answer of somebody else may have been quicker.
		if _, err := v.c.Service.Decide(ctx, a.RunID, a.ID, d); errors.Is(err, core.ErrConflict) {
			v.c.say("! ", term.Sentence(err))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// ask shows the whole of what would be done and reads yes or no, the latter with or
// without a reason.
func (v *view) ask(ctx context.Context, a core.Approval) (core.ApprovalDecision, error) {
	v.close()
	v.c.say("? ", fmt.Sprintf("may %s start? %s", a.Tool, a.Arguments))
	for {
		v.c.say("  ", "y = yes, n = no, n <why> tells the agent why")
		text, err := v.c.Lines.Line(ctx)
		if errors.Is(err, io.EOF) {
			return core.ApprovalDecision{}, errUnanswered
		}
		if err != nil {
			return core.ApprovalDecision{}, err
		}
		word, why, _ := strings.Cut(strings.TrimSpace(text), " ")
		switch strings.ToLower(word) {
		case "y", "yes":
			return core.ApprovalDecision{Approve: true}, nil
		case "n", "no":
			return core.ApprovalDecision{Comment: strings.TrimSpace(why)}, nil
		}
	}
}
