package chat

import (
	"context"
	"fmt"
	"iter"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// sendMessage sends a message and shows its run. It also returns the error that ended the run.
func (c *Conversation) sendMessage(ctx context.Context, content string) error {
	id, err := c.ensureSession(ctx)
	if err != nil {
		return err
	}
	return c.showRun(ctx, func(ctx context.Context) iter.Seq2[core.Event, error] {
		return c.Service.Send(ctx, core.SendMessage{SessionID: id, Content: content, Model: c.Model, Source: core.SourceCLI, Parts: c.attached})
	})
}

// showRun shows the events of a run.
func (c *Conversation) showRun(ctx context.Context, start func(context.Context) iter.Seq2[core.Event, error]) error {
	width, height := c.Size()
	v := &runView{c: c, width: width, height: height, run: make(chan core.RunID, 1)}
	watched, leave := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		v.cancelOnInterrupt(watched, leave)
	}()
	for e, err := range start(watched) {
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
