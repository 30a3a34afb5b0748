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
		Args: cobra.MaximumNArgs(1),
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
	session, err := p.openSession(ctx, s.client, agent, id)
	if err != nil {
		return err
	}
	width, _ := p.terminal()
	input, err := p.lines(width > 0)
	if err != nil {
		return err
	}
	defer input.Close()
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	if width > 0 {
		fmt.Fprintf(p.Out, "%s\nagent %s · /help lists the commands, Ctrl-D leaves\n", s.how, session.Agent)
	}
	if id != "" {
		// B6: what a resumed session remembers.
		fmt.Fprintf(p.Out, "%d messages in history (%d summarized)\n", session.MessageCount, session.SummarizedCount)
	}
	err = talk.New(talk.Options{
		Service: s.client, Session: session, Lines: input, Out: p.Out, Interrupts: interrupts, Size: p.terminal, Attended: width > 0,
	}).Run(ctx)
	if width > 0 {
		fmt.Fprintf(p.Out, "to go on: bobbin chat --session %s\n", session.ID)
	}
	return err
}

// openSession makes a session, or finds the one to go on with.
func (p *program) openSession(ctx context.Context, c *client.Client, agent string, id core.SessionID) (core.Session, error) {
	if id == "" {
		return c.CreateSession(ctx, core.Session{Agent: agent, Source: core.SourceCLI})
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
	if !terminal || !term.IsTerminal(int(p.In.Fd())) {
		return line.NewPlain(p.In), nil
	}
	return line.NewEdited(p.In, p.Out, "> ")
}
