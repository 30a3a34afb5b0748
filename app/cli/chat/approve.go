package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// recordApproval records an approval that the run requests, or its decision, made here or
// elsewhere.
func (v *runView) recordApproval(e core.Event) {
	a := eventData[core.ApprovalData](e).Approval
	v.approvals = slices.DeleteFunc(v.approvals, func(b core.Approval) bool { return a.ID == b.ID })
	switch {
	case a.Status == core.ApprovalOpen && a.Kind == core.KindClientTool:
		v.printNote("%s %s: waiting for the result, which the program that brought this tool sends", a.Tool, a.Arguments)
	case a.Status == core.ApprovalOpen:
		v.approvals = append(v.approvals, a)
	case a.Status == core.ApprovalAnswered:
		v.printNote("%s: answered", a.Tool)
	case a.Status != core.ApprovalApproved:
		v.printNote("%s: %s", a.Tool, a.Refusal())
	}
}

// askApprovals asks the user for all approvals that the run is waiting for. An error means
// that they are still open.
func (v *runView) askApprovals(ctx context.Context) error {
	asked := v.approvals
	v.approvals = nil
	for _, a := range asked {
		d, err := v.askApproval(ctx, a)
		if errors.Is(err, term.ErrInterrupted) {
			_, err = v.c.Service.CancelRun(ctx, a.RunID, false)
			return err
		}
		if err != nil {
			return err
		}
		// Another client may have decided first.
		if _, err := v.c.Service.Decide(ctx, a.RunID, a.ID, d); errors.Is(err, core.ErrConflict) {
			v.c.printNotice("! ", term.ErrorText(err))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// askApproval shows the whole tool call, escaped, and reads yes, or no with an optional reason.
func (v *runView) askApproval(ctx context.Context, a core.Approval) (core.ApprovalDecision, error) {
	v.close()
	v.c.printNotice("? ", fmt.Sprintf("Allow %s? %s", core.Literal(a.Tool), core.Literal(a.Arguments)))
	for {
		if v.c.Attended {
			v.c.printNotice("  ", "y = yes, n = no, n <reason> = no, and tell the agent why")
		}
		text, err := v.c.Lines.Line(ctx)
		if errors.Is(err, io.EOF) {
			return core.ApprovalDecision{}, core.Errorf(core.ErrUnavailable,
				"the run waits for an approval: decide with bobbin runs approve %s, or deny", a.RunID)
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
