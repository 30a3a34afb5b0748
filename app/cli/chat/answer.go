package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"bobbin/app/api/ops"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

// Ask sends a message and shows its run. It also returns the error that ended the run.
func (c *Conversation) Ask(ctx context.Context, content string) error {
	if err := c.ensureSession(ctx); err != nil {
		return err
	}
	message := ops.NewMessage{InSession: c.inSession(), Content: content, Model: c.Model, Source: core.SourceCLI}
	for _, p := range c.attached {
		message.Parts = append(message.Parts, ops.FilePart{Type: p.Type, BlobID: p.BlobID, Name: p.Name})
	}
	return c.showRun(ctx, ops.SendMessage.Operation, message)
}

// showRun shows the events of the run that an operation starts.
func (c *Conversation) showRun(ctx context.Context, op ops.Operation, in any) error {
	width, height := c.Size()
	v := &runView{c: c, width: width, height: height, run: make(chan core.RunID, 1)}
	watched, leave := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		v.cancelOnInterrupt(watched, leave)
	}()
	for e, err := range c.Service.StartRun(watched, op, in) {
		if err != nil {
			v.err = err
			break
		}
		if e.RunID != "" && !v.started {
			v.run <- e.RunID
			v.started = true
		}
		switch e.Type {
		case core.EventMessageDelta:
			v.writeText(eventData[core.DeltaData](e).Text)
		case core.EventMessageCreated:
			v.showMessage(eventData[core.MessageData](e).Message)
		case core.EventMessageDiscarded:
			v.printNote("the answer was interrupted and starts again")
			v.shown = false
		case core.EventToolStarted:
			d := eventData[core.ToolStartedData](e)
			v.printNote("%s %s", d.Name, d.Arguments)
		case core.EventToolFinished:
			d := eventData[core.ToolFinishedData](e)
			v.printNote("→ %s", d.Preview)
		case core.EventApprovalRequested, core.EventApprovalDecided:
			v.recordApproval(e)
		case core.EventRunQueued:
			v.printNote("waiting for the previous answer")
		case core.EventRunCanceled:
			v.printNote("stopped; the partial answer is kept")
		case core.EventRunFailed:
			v.close()
			v.err = core.Errorf(core.ErrModel, "the run failed")
			if run := eventData[core.RunData](e).Run; run.Error != nil {
				v.err = core.Errorf(core.ErrModel, "%s", run.Error.Message)
			}
		default:
			v.showContextEvent(e)
		}
		if e.Type == core.EventRunWaiting {
			if v.err = v.askApprovals(watched); v.err != nil {
				break
			}
		}
	}
	if v.started { // accepted
		c.attached = nil
	}
	leave(nil)
	<-ended
	v.close()
	return v.err
}

// runView shows the events of one run.
type runView struct {
	c         *Conversation
	width     int
	height    int
	run       chan core.RunID // receives the run's id once it is known
	started   bool            // the run's id is known
	text      *term.Markdown  // the streaming message; nil = none
	shown     bool            // the message was shown while it streamed
	approvals []core.Approval // the open approvals
	err       error           // why there is no answer
}

// showContextEvent shows events of context management.
func (v *runView) showContextEvent(e core.Event) {
	if eventData[core.ContextData](e).Ahead { // it does not delay the answer
		return
	}
	switch e.Type {
	case core.EventContextStarted:
		if eventData[core.ContextData](e).Kind == core.SummaryRun {
			v.printNote("summarizing earlier tool calls …")
			return
		}
		v.printNote("summarizing earlier messages …")
	case core.EventContextCompleted:
		d := eventData[core.ContextData](e)
		if d.Kind == core.SummaryRun {
			v.printNote("summarized %d tool messages: prompt %d → %d messages, %s → %s tokens",
				d.MessagesCovered, d.MessagesBefore, d.MessagesAfter, core.Number(d.TokensBefore), core.Number(d.TokensAfter))
			return
		}
		v.printNote("summarized %d messages: prompt %s → %s tokens", d.MessagesCovered, core.Number(d.TokensBefore), core.Number(d.TokensAfter))
	case core.EventContextFailed, core.EventContextWarning:
		v.printNote("%s", eventData[core.ContextData](e).Reason)
	default: // node.* and similar events are for programs
	}
}

// writeText shows text of the answer as it streams.
func (v *runView) writeText(text string) {
	if text == "" {
		return
	}
	if v.text == nil {
		v.text = term.NewMarkdown(v.c.Out, v.width, v.height)
	}
	v.shown = true
	v.text.Write(text)
}

// showMessage shows a finished message whose text did not stream.
func (v *runView) showMessage(m core.Message) {
	if m.Role == core.RoleAssistant && m.Content != "" && !v.shown {
		v.writeText(m.Content)
	}
	if m.Role == core.RoleAssistant {
		v.close()
		v.shown, v.c.lastAnswer = false, m.ID
	}
}

// printNote prints a line about the run. On a terminal it overwrites what was typed
// meanwhile, such as ^C.
func (v *runView) printNote(format string, args ...any) {
	v.close()
	if v.width > 0 {
		fmt.Fprint(term.Raw(v.c.Out), "\r\x1b[K")
	}
	fmt.Fprintln(v.c.Notes, term.Line("· "+fmt.Sprintf(format, args...), max(v.width-1, 0)))
}

// close ends the streaming text. On a terminal an empty line follows it.
func (v *runView) close() {
	if v.text == nil {
		return
	}
	v.text.Close()
	v.text = nil
	if v.width > 0 {
		fmt.Fprintln(v.c.Out)
	}
}

// eventData returns an event's data; it is empty if they are of another type.
func eventData[T any](e core.Event) T {
	data, _ := e.Data.(T)
	return data
}

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
		in, err := v.askApproval(ctx, a)
		if errors.Is(err, term.ErrInterrupted) {
			_, err = client.Call(ctx, v.c.Service, ops.CancelRun, ops.Cancel{InRun: in.InRun})
			return err
		}
		if err != nil {
			return err
		}
		// Another client may have decided first.
		if _, err := client.Call(ctx, v.c.Service, ops.DecideApproval, in); errors.Is(err, core.ErrConflict) {
			v.c.printNotice("! ", term.ErrorText(err))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// askApproval shows the whole tool call, escaped, and reads yes, or no with an optional reason.
func (v *runView) askApproval(ctx context.Context, a core.Approval) (ops.Decision, error) {
	in := ops.Decision{InRun: ops.InRun{RunID: a.RunID}, ApprovalID: a.ID}
	v.close()
	v.c.printNotice("? ", fmt.Sprintf("Allow %s? %s", core.Literal(a.Tool), core.Literal(a.Arguments)))
	for {
		if v.c.Attended {
			v.c.printNotice("  ", "y = yes, n = no, n <reason> = no, and tell the agent why")
		}
		text, err := v.c.Lines.Line(ctx)
		if errors.Is(err, io.EOF) {
			return in, core.Errorf(core.ErrUnavailable,
				"the run waits for an approval: decide with bobbin runs approve %s, or deny", a.RunID)
		}
		if err != nil {
			return in, err
		}
		word, why, _ := strings.Cut(strings.TrimSpace(text), " ")
		switch strings.ToLower(word) {
		case "y", "yes":
			in.Decision = "approve"
			return in, nil
		case "n", "no":
			in.Decision, in.Comment = "deny", strings.TrimSpace(why)
			return in, nil
		}
	}
}

// Errors after Ctrl-C that ends a command, or waiting for an answer.
var (
	errStopped        = core.Errorf(core.ErrCanceled, "stopped")
	errStoppedWaiting = core.Errorf(core.ErrCanceled, "stopped waiting; if the message has arrived, the answer will appear in the conversation")
)

// runInterruptible calls do and cancels its context at the next Ctrl-C.
func (c *Conversation) runInterruptible(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-c.Interrupts:
		cancel()
		if <-ended == nil {
			return nil
		}
		return errStopped
	}
}

// cancelOnInterrupt cancels the run at the first Ctrl-C after its id is known. At the second
// one, or if the run cannot be canceled, it ends ctx by calling leave. It returns when ctx
// ends.
func (v *runView) cancelOnInterrupt(ctx context.Context, leave context.CancelCauseFunc) {
	var run core.RunID
	interrupts := 0
	for {
		select {
		case run = <-v.run:
		case <-v.c.Interrupts:
			interrupts++
		case <-ctx.Done():
			return
		}
		if interrupts > 1 {
			leave(errStoppedWaiting)
			return
		}
		if interrupts == 1 && run != "" {
			if _, err := client.Call(ctx, v.c.Service, ops.CancelRun, ops.Cancel{InRun: ops.InRun{RunID: run}}); err != nil {
				leave(errStoppedWaiting)
				return
			}
			run = "" // cancel only once
		}
	}
}
