package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"bobbin/app/cli/chat"
	draw "bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) askCommand() *cobra.Command {
	c, keep := sessionChoice{}, false
	cmd := &cobra.Command{
		Use:   "ask <question>",
		Short: "Ask one question and print the answer",
		Long: "Sends one message with one call of the model, and prints only the answer to the standard output. What\n" +
			"is piped into the standard input is appended to the arguments. The conversation is in no list and is\n" +
			"removed after a day; --keep keeps it, and --session or --last continue one that is kept.\n" +
			"The exit code is 1 if there is no answer.",
		Example: "  bobbin ask what is 17 % of 4,300\n  bobbin ask 'Summarize this:' < report.txt\n  git diff | bobbin ask --agent reviewer\n  bobbin ask --keep who wrote Emma\n  bobbin ask --last and when",
		RunE: func(cmd *cobra.Command, args []string) error {
			asked := withoutDash(args)
			text := strings.Join(asked, " ")
			typed := term.IsTerminal(int(p.In.Fd()))
			if typed && len(args) == 0 {
				return core.Errorf(core.ErrInvalid, "no question given: %s ask <question>", programName())
			}
			if !typed || len(asked) < len(args) {
				more, err := p.readInput(maxPiped)
				if err != nil {
					return err
				}
				text = strings.TrimSpace(text + "\n\n" + more)
			}
			if strings.TrimSpace(text) == "" {
				return core.Errorf(core.ErrInvalid, "the question is empty")
			}
			return p.withServer(cmd, func(ctx context.Context, s connection) error { return p.runAsk(ctx, s, c, keep, text) })
		},
	}
	c.addFlags(cmd)
	cmd.Flags().StringVar(&c.agent, "agent", "", "the agent that answers")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the conversation, so that --last continues it")
	p.withJSON(cmd)
	return cmd
}

func (p *program) runAsk(ctx context.Context, s connection, c sessionChoice, keep bool, text string) error {
	session, err := openSession(ctx, s.client, c)
	if err != nil {
		return err
	}
	session.Temporary = session.ID == "" && !keep
	if !p.json {
		talked := chat.New(chat.Options{
			Service: s.client, Session: session, Model: c.model, Lines: draw.NewPlain(strings.NewReader("")), Out: p.Out, Notes: p.Err, Size: p.terminalSize,
		})
		return talked.Ask(ctx, text)
	}
	if session.ID == "" {
		if session, err = s.client.CreateSession(ctx, session); err != nil {
			return err
		}
	}
	answer, err := s.client.SendAndWait(ctx, core.SendMessage{SessionID: session.ID, Content: text, Model: c.model, Source: core.SourceCLI})
	if err != nil {
		return err
	}
	if err := p.printJSON(answer); err != nil {
		return err
	}
	if answer.Run.Status != core.RunSucceeded {
		return &silentError{fmt.Sprintf("the run has status %s", answer.Run.Status)}
	}
	return nil
}
