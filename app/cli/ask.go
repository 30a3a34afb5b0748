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
	c := sessionChoice{}
	cmd := &cobra.Command{
		Use:   "ask <question>",
		Short: "Ask one question and print the answer",
		Long: "Sends one message and prints only the answer to the standard output. Without arguments the message is\n" +
			"read from the standard input; with - as the last argument the input is appended to the others.\n" +
			"The exit code is 1 if there is no answer.",
		Example: "  bobbin ask what is 17 % of 4,300\n  bobbin ask 'Summarize this:' - < report.txt\n  bobbin ask --last and in euros\n  git diff | bobbin ask --agent reviewer",
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := p.readQuestion(args)
			if err != nil {
				return err
			}
			return p.withServer(cmd, func(ctx context.Context, s connection) error { return p.runAsk(ctx, s, c, text) })
		},
	}
	c.addFlags(cmd)
	cmd.Flags().StringVar(&c.agent, "agent", "", "the agent that answers")
	p.withJSON(cmd)
	return cmd
}

// readQuestion returns the message: the arguments, the standard input, or both.
func (p *program) readQuestion(words []string) (string, error) {
	asked := withoutDash(words)
	text := strings.Join(asked, " ")
	if len(asked) < len(words) || len(words) == 0 {
		if len(words) == 0 && term.IsTerminal(int(p.In.Fd())) {
			return "", core.Errorf(core.ErrInvalid, "no question given: %s ask <question>", programName())
		}
		more, err := p.readInput(maxPiped)
		if err != nil {
			return "", err
		}
		text = strings.TrimSpace(text + "\n\n" + more)
	}
	if strings.TrimSpace(text) == "" {
		return "", core.Errorf(core.ErrInvalid, "the question is empty")
	}
	return text, nil
}

func (p *program) runAsk(ctx context.Context, s connection, c sessionChoice, text string) error {
	session, err := openSession(ctx, s.client, c)
	if err != nil {
		return err
	}
	if !p.json {
		talked := chat.New(chat.Options{
			Service: s.client, Session: session, Model: c.model, Lines: draw.NewWhole(strings.NewReader(""), 0), Out: p.Out, Notes: p.Err, Size: p.terminalSize,
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
