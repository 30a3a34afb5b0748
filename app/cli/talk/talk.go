// Package talk is a conversation in a terminal: it reads lines, shows answers as
// they stream, and knows a few commands that begin with a slash.
package talk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"bobbin/app/cli/line"
	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// service is what a conversation needs of Bobbin (client.Client).
type service interface {
	CreateSession(ctx context.Context, s core.Session) (core.Session, error)
	Send(ctx context.Context, m core.SendMessage) iter.Seq2[core.Event, error]
	CancelRun(ctx context.Context, id core.RunID, wait bool) (core.Run, error)
	Decide(ctx context.Context, run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (core.Approval, error)
	Context(ctx context.Context, id core.SessionID) (core.ContextReport, error)
	Summarize(ctx context.Context, id core.SessionID, focus string) (core.Summary, error)
	UploadBlob(ctx context.Context, u core.Upload) (core.Blob, error)
	summaries
	sight
}

// lines reads what the user types, as package line does.
type lines interface {
	Line(ctx context.Context) (string, error)
}

// Options are what a Conversation is made of.
type Options struct {
	Service service
	Session core.Session // without an ID it is made when it is first needed
	Lines   lines
	Out     io.Writer
	// Interrupts tells that Ctrl-C was pressed while something was going on.
	Interrupts <-chan os.Signal
	// Size returns the terminal's width and height, zeros if there is none.
	Size func() (width, height int)
	// Attended says that a person reads along: they are told of errors and go on.
	// Otherwise the first error ends the conversation.
	Attended bool
}

// Conversation is one sitting. Not safe for concurrent use.
type Conversation struct {
	Options
	attached []core.Part // go with the next message
}

// New returns a conversation.
func New(o Options) *Conversation { return &Conversation{Options: o} }

// Run reads and answers until the user leaves or ctx ends. The error is that of
// the reading, or of an answer to nobody (Options.Attended).
func (c *Conversation) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		text, err := c.Lines.Line(ctx)
		switch {
		case errors.Is(err, line.ErrInterrupted):
			fmt.Fprintln(c.Out, "(Ctrl-D or /quit leaves)")
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read line: %w", err)
		}
		text = strings.TrimSpace(text)
		if text == "/quit" || text == "/exit" {
			return nil
		}
		c.forgetInterrupts()
		if err := c.take(ctx, text); err != nil && !c.Attended {
			return err
		} else if err != nil && ctx.Err() == nil {
			c.say("! ", term.Sentence(err))
		}
	}
	return nil
}

// forgetInterrupts drops a Ctrl-C that came when nothing was going on any more.
func (c *Conversation) forgetInterrupts() {
	select {
	case <-c.Interrupts:
	default:
	}
}

// session makes the session if there is none yet.
func (c *Conversation) session(ctx context.Context) (core.SessionID, error) {
	if c.Session.ID == "" {
		made, err := c.Service.CreateSession(ctx, c.Session)
		if err != nil {
			return "", err
		}
		c.Session = made
	}
	return c.Session.ID, nil
}

func (c *Conversation) context(ctx context.Context) error {
	id, err := c.session(ctx)
	if err != nil {
		return err
	}
	report, err := c.Service.Context(ctx, id)
	if err != nil {
		return err
	}
	width, _ := c.Size()
	term.DrawContext(c.Out, report, time.Now(), width)
	return nil
}

// summarize makes a summary now and shows that it is at work (B5).
func (c *Conversation) summarize(ctx context.Context, focus string) error {
	id, err := c.session(ctx)
	if err != nil {
		return err
	}
	stop := c.progress("summarizing")
	s, err := c.Service.Summarize(ctx, id, focus)
	stop()
	if err != nil {
		return err
	}
	c.say("· ", fmt.Sprintf("summary v%d: %d messages → %d tokens (%s, %.1f s)", s.Version, s.MessagesCovered, s.TokenCount, s.Strategy, s.Duration.Seconds()))
	if s.Note != "" {
		c.say("  ", s.Note)
	}
	return nil
}

// say writes a line of the program's own, wrapped.
func (c *Conversation) say(mark, text string) {
	width, _ := c.Size()
	fmt.Fprintln(c.Out, term.Wrap(mark+text, width, "  "))
}

// progress shows what goes on, and for how long, until it is stopped.
func (c *Conversation) progress(what string) (stop func()) {
	if width, _ := c.Size(); width == 0 {
		fmt.Fprintf(c.Out, "· %s …\n", what)
		return func() {}
	}
	began, done, ended := time.Now(), make(chan struct{}), make(chan struct{})
	fmt.Fprintf(c.Out, "· %s …", what)
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				fmt.Fprintf(c.Out, "\r\x1b[K· %s … %.0f s", what, time.Since(began).Seconds())
			case <-done:
				fmt.Fprint(c.Out, "\r\x1b[K")
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}
