package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"bobbin/app/cli/line"
	"bobbin/app/cli/talk"
	draw "bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

func (p *program) chat() *cobra.Command {
	session := ""
	cmd := &cobra.Command{
		Use:   "chat [agent]",
		Short: "Talk to an agent in the terminal",
		Long: "Talks to an agent. It uses the Bobbin that runs on the data folder, or works by itself\n" +
			"when none runs. Conversations are kept; --session goes on with one.",
		Example: "  bobbin chat\n  bobbin chat researcher\n  bobbin chat --session 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243",
		Args:    atMost(1), ValidArgsFunction: p.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			agent := ""
			if len(args) > 0 {
				agent = args[0]
			}
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				return p.runChat(ctx, s, agent, core.SessionID(session))
			})
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "go on with this session")
	return cmd
}

func (p *program) runChat(ctx context.Context, s connection, agent string, id core.SessionID) error {
	session, err := openSession(ctx, s.client, agent, id)
	if err != nil {
		return err
	}
	width, _ := p.terminal()
	attended := width > 0 && term.IsTerminal(int(p.In.Fd()))
	input, err := p.lines(attended)
	if err != nil {
		return err
	}
	defer input.Close()
	interrupts := make(chan os.Signal, 1)
	if attended {
		signal.Notify(interrupts, os.Interrupt)
		defer signal.Stop(interrupts)
		p.greet(s, session)
	}
	if id != "" {
		// B6: what a resumed session remembers.
		fmt.Fprintf(p.Out, "%d messages in history (%d summarized)\n", session.MessageCount, session.SummarizedCount)
	}
	talked := talk.New(talk.Options{
		Service: s.client, Session: session, Lines: input, Out: p.Out, Interrupts: interrupts, Size: p.terminal, Attended: attended,
	})
	err = talked.Run(ctx)
	if attended && talked.Session.ID != "" {
		fmt.Fprintf(p.Out, "to go on: %s chat --session %s\n", programName(), talked.Session.ID)
	}
	return err
}

// greet says who is there.
func (p *program) greet(s connection, session core.Session) {
	width, _ := p.terminal()
	who := s.how
	if session.Agent != "" {
		who += " · agent " + session.Agent
	}
	fmt.Fprintln(p.Out, draw.Wrap(who, width, "  "))
	fmt.Fprintln(p.Out, draw.Wrap("/help lists the commands, Ctrl-D leaves", width, "  "))
}

// openSession finds the session to go on with. A new one is only described: it
// is made with its first message, so that a look leaves nothing behind.
func openSession(ctx context.Context, c *client.Client, agent string, id core.SessionID) (core.Session, error) {
	if id == "" {
		if agent != "" {
			if _, err := c.Agent(ctx, agent); err != nil {
				return core.Session{}, err
			}
		}
		return core.Session{Agent: agent, Source: core.SourceCLI}, nil
	}
	session, err := c.Session(ctx, id)
	if err == nil && agent != "" && agent != session.Agent {
		return session, core.Errorf(core.ErrInvalid, "session %s belongs to the agent %s, not to %s", id, session.Agent, agent)
	}
	return session, err
}

// terminal returns the size of the terminal; zeros when the output is not one.
func (p *program) terminal() (width, height int) {
	out, ok := p.Out.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		return 0, 0
	}
	width, height, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return 80, 24
	}
	return width, height
}

// input reads lines until it is closed.
type input interface {
	Line(ctx context.Context) (string, error)
	Close() error
}

// lines returns the reader of the user's lines: with editing and history on a
// terminal, plain otherwise.
func (p *program) lines(terminal bool) (input, error) {
	if !terminal {
		return line.NewPlain(p.In), nil
	}
	return line.NewEdited(p.In, p.Out, "> ")
}
