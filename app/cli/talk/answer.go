package talk

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// answer sends a message and shows what comes of it.
func (c *Conversation) answer(ctx context.Context, content string) error {
	v := &view{c: c}
	stop := v.onInterrupt(ctx)
	defer stop()
	for e, err := range c.Service.Send(ctx, core.SendMessage{SessionID: c.Session.ID, Content: content, Source: core.SourceCLI}) {
		if err != nil {
			v.close()
			return err
		}
		v.show(e)
	}
	v.close()
	return nil
}

// view shows one run.
type view struct {
	c    *Conversation
	run  chan core.RunID // the run's id, once it is known
	text *term.Markdown  // the message on its way; nil = none
	said bool            // the message was shown as it came
}

// onInterrupt cancels the run when the user presses Ctrl-C. The returned function
// ends the watch.
func (v *view) onInterrupt(ctx context.Context) (stop func()) {
	v.run = make(chan core.RunID, 1)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var run core.RunID
		wanted := false
		for {
			select {
			case run = <-v.run:
			case <-v.c.Interrupts:
				wanted = true
			case <-done:
				return
			}
			if wanted && run != "" {
				wanted = false
				// An error shows in the stream that goes on.
				_, _ = v.c.Service.CancelRun(ctx, run, false)
			}
		}
	}()
	return func() { close(done); <-ended }
}

// show shows one event.
func (v *view) show(e core.Event) {
	if e.RunID != "" {
		select {
		case v.run <- e.RunID:
		default:
		}
	}
	switch e.Type {
	case core.EventMessageDelta:
		v.write(read[core.DeltaData](e).Text)
	case core.EventMessageCreated:
		v.created(read[core.MessageData](e).Message)
	case core.EventMessageDiscarded:
		v.note("the answer broke off and starts again")
	case core.EventToolStarted:
		d := read[core.ToolStartedData](e)
		v.note("%s %s", d.Name, strings.Join(strings.Fields(d.Arguments), " "))
	case core.EventToolFinished:
		d := read[core.ToolFinishedData](e)
		v.note("→ %s", strings.Join(strings.Fields(d.Preview), " "))
	case core.EventRunQueued:
		v.note("waiting for the answer before this one")
	case core.EventRunCanceled:
		v.note("stopped; what was said is kept")
	case core.EventRunFailed:
		if run := read[core.RunData](e).Run; run.Error != nil {
			v.close()
			fmt.Fprintf(v.c.Out, "! %s\n", run.Error.Message)
		}
	default:
		v.context(e)
	}
}

// context shows what context management does.
func (v *view) context(e core.Event) {
	switch e.Type {
	case core.EventContextStarted:
		v.note("summarizing earlier messages …")
	case core.EventContextCompleted:
		d := read[core.ContextData](e)
		v.note("summarized: %d messages covered, prompt %d → %d tokens", d.MessagesCovered, d.TokensBefore, d.TokensAfter)
	case core.EventContextFailed:
		v.note("summary: %s", read[core.ContextData](e).Reason)
	default: // node.* and the like are for programs
	}
}

// write shows text of the answer as it comes.
func (v *view) write(text string) {
	if v.text == nil {
		v.text = term.NewMarkdown(v.c.Out, v.c.Width, v.c.Height)
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

// note shows a line about the run.
func (v *view) note(format string, args ...any) {
	v.close()
	line := "· " + fmt.Sprintf(format, args...)
	if v.c.Width > 0 {
		line = core.Clip(line, v.c.Width)
	}
	fmt.Fprintln(v.c.Out, line)
}

// close ends the text on its way.
func (v *view) close() {
	if v.text != nil {
		v.text.Close()
		v.text = nil
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
