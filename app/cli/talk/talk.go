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

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// service is what a conversation needs of Bobbin (client.Client).
type service interface {
	Send(ctx context.Context, m core.SendMessage) iter.Seq2[core.Event, error]
	CancelRun(ctx context.Context, id core.RunID, wait bool) (core.Run, error)
	Context(ctx context.Context, id core.SessionID) (core.ContextReport, error)
	Summarize(ctx context.Context, id core.SessionID, focus string) (core.Summary, error)
}

// lines reads what the user types. Line returns io.EOF at the end, and
// ErrInterrupted when the user pressed Ctrl-C at the prompt.
type lines interface {
	Line() (string, error)
}

// ErrInterrupted says that the user pressed Ctrl-C instead of ending the line.
var ErrInterrupted = errors.New("interrupted")

// Options are what a Conversation is made of. All are required but Width and
// Height, which are 0 when the output is not a terminal.
type Options struct {
	Service    service
	Session    core.Session
	Lines      lines
	Out        io.Writer
	Interrupts <-chan os.Signal // Ctrl-C while an answer comes
	Width      int
	Height     int
}

// Conversation is one sitting. Not safe for concurrent use.
type Conversation struct{ Options }

// New returns a conversation.
func New(o Options) *Conversation { return &Conversation{o} }

const help = `  /context             what the next prompt is made of, and how near a summary is
  /summarize [focus]   summarize the older messages now; say what to keep above all
  /help                this list
  /quit                leave (Ctrl-D too); the conversation is kept
  Ctrl-C               stop the answer that is coming; what was said is kept
`

// Run reads and answers until the user leaves or ctx ends.
func (c *Conversation) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		line, err := c.Lines.Line()
		switch {
		case errors.Is(err, ErrInterrupted):
			fmt.Fprintln(c.Out, "(Ctrl-D or /quit leaves)")
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read line: %w", err)
		}
		line = strings.TrimSpace(line)
		if line == "/quit" || line == "/exit" {
			return nil
		}
		if err := c.take(ctx, line); err != nil {
			fmt.Fprintf(c.Out, "! %s\n", err)
		}
	}
	return nil
}

// take does what one line asks for.
func (c *Conversation) take(ctx context.Context, line string) error {
	command, rest, _ := strings.Cut(line, " ")
	switch {
	case line == "":
		return nil
	case command == "/help":
		fmt.Fprint(c.Out, help)
		return nil
	case command == "/context":
		return c.context(ctx)
	case command == "/summarize":
		return c.summarize(ctx, strings.TrimSpace(rest))
	case strings.HasPrefix(command, "/") && !strings.Contains(command[1:], "/"):
		return fmt.Errorf("there is no command %s; /help lists them", command)
	default:
		return c.answer(ctx, line)
	}
}

func (c *Conversation) context(ctx context.Context) error {
	report, err := c.Service.Context(ctx, c.Session.ID)
	if err != nil {
		return err
	}
	term.DrawContext(c.Out, report, time.Now())
	return nil
}

// summarize makes a summary now and shows that it is at work (B5).
func (c *Conversation) summarize(ctx context.Context, focus string) error {
	fmt.Fprintln(c.Out, "· summarizing …")
	s, err := c.Service.Summarize(ctx, c.Session.ID, focus)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "· summary v%d: %d messages → %d tokens (%s, %.1f s)\n", s.Version, s.MessagesCovered, s.TokenCount, s.Strategy, s.Duration.Seconds())
	if s.Note != "" {
		fmt.Fprintf(c.Out, "  %s\n", s.Note)
	}
	return nil
}
