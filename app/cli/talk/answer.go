package talk

import (
	"context"
	"encoding/json"
	"fmt"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// answer sends a message and shows what comes of it. It returns the error that
// ended the run, too.
func (c *Conversation) answer(ctx context.Context, content string) error {
	id, err := c.session(ctx)
	if err != nil {
		return err
	}
	width, height := c.Size()
	v := &view{c: c, width: width, height: height, run: make(chan core.RunID, 1)}
	watched, leave := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		v.cancelOnInterrupt(watched, leave)
	}()
	for e, err := range c.Service.Send(watched, core.SendMessage{
		SessionID: id, Content: content, Source: core.SourceCLI, Parts: c.attached,
	}) {
		if err != nil {
			v.failed = err
			break
		}
		v.show(e)
		if e.Type == core.EventRunWaiting {
			if v.failed = v.answerQuestions(watched); v.failed != nil {
				break
			}
		}
	}
	if v.known { // accepted
		c.attached = nil
	}
	leave(nil)
	<-ended
	v.close()
	return v.failed
}

// view shows one run.
type view struct {
	c      *Conversation
	width  int
	height int
	run    chan core.RunID // the run's id, once it is known
	known  bool            // it was told
	text   *term.Markdown  // the message on its way; nil = none
	said   bool            // the message was shown as it came
	asked  []core.Approval // what the run waits for
	failed error           // why there is no answer
}

// show shows one event.
func (v *view) show(e core.Event) {
	if e.RunID != "" && !v.known {
		v.run <- e.RunID
		v.known = true
	}
	switch e.Type {
	case core.EventMessageDelta:
		v.write(read[core.DeltaData](e).Text)
	case core.EventMessageCreated:
		v.created(read[core.MessageData](e).Message)
	case core.EventMessageDiscarded:
		v.note("the answer broke off and starts again")
		v.said = false
	case core.EventToolStarted:
		d := read[core.ToolStartedData](e)
		v.note("%s %s", d.Name, d.Arguments)
	case core.EventToolFinished:
		d := read[core.ToolFinishedData](e)
		v.note("→ %s", d.Preview)
	case core.EventApprovalRequested, core.EventApprovalDecided:
		v.question(e)
	case core.EventRunQueued:
		v.note("waiting for the answer before this one")
	case core.EventRunCanceled:
		v.note("stopped; what was said is kept")
	case core.EventRunFailed:
		v.close()
		v.failed = core.Errorf(core.ErrModel, "the run failed")
		if run := read[core.RunData](e).Run; run.Error != nil {
			v.failed = core.Errorf(core.ErrModel, "%s", run.Error.Message)
		}
	default:
		v.context(e)
	}
}

// context shows what context management does.
func (v *view) context(e core.Event) {
	if read[core.ContextData](e).Ahead { // nobody waits for it
		return
	}
	switch e.Type {
	case core.EventContextStarted:
		if read[core.ContextData](e).Kind == core.SummaryRun {
			v.note("making notes on the work so far …")
			return
		}
		v.note("summarizing earlier messages …")
	case core.EventContextCompleted:
		d := read[core.ContextData](e)
		if d.Kind == core.SummaryRun { // L6
			v.note("notes in place of %d messages of tools: prompt %d → %d messages, %s → %s tokens",
				d.MessagesCovered, d.MessagesBefore, d.MessagesAfter, term.Number(d.TokensBefore), term.Number(d.TokensAfter))
			return
		}
		v.note("summarized: %d messages covered, prompt %s → %s tokens", d.MessagesCovered, term.Number(d.TokensBefore), term.Number(d.TokensAfter))
	case core.EventContextFailed, core.EventContextWarning:
		v.note("%s", read[core.ContextData](e).Reason)
	default: // node.* and the like are for programs
	}
}

// write shows text of the answer as it comes.
func (v *view) write(text string) {
	if text == "" {
		return
	}
	if v.text == nil {
		v.text = term.NewMarkdown(v.c.Out, v.width, v.height)
	}
	v.said = true
	v.text.Write(text)
}

// created shows a finished message whose text was not seen on its way.
func (v *view) created(m core.Message) {
	if m.Role == core.RoleAssistant && m.Content != "" && !v.said {
		v.write(m.Content)
	}
	if m.Role == core.RoleAssistant {
		v.close()
		v.said = false
	}
}

// note shows a line about the run. On a terminal it goes over what was typed
// meanwhile, such as ^C.
func (v *view) note(format string, args ...any) {
	v.close()
	if v.width > 0 {
		fmt.Fprint(v.c.Out, "\r\x1b[K")
	}
	fmt.Fprintln(v.c.Out, term.Line("· "+fmt.Sprintf(format, args...), max(v.width-1, 0)))
}

// close ends the text on its way. On a terminal an empty line follows it.
func (v *view) close() {
	if v.text == nil {
		return
	}
	v.text.Close()
	v.text = nil
	if v.width > 0 {
		fmt.Fprintln(v.c.Out)
	}
}

// read returns an event's data; what cannot be read is empty.
func read[T any](e core.Event) T {
	var data T
	if err := json.Unmarshal(e.Data, &data); err != nil {
		var none T
		return none
	}
	return data
}
