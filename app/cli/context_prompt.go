package cli

import (
	"context"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) contextPrompt() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "prompt <id>",
		Short:   "Show the prompt that would be sent now, word for word",
		Example: "  bobbin context prompt 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 --json",
		Args:    oneID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				prompt, err := s.client.Prompt(ctx, core.SessionID(args[0]))
				if err != nil {
					return err
				}
				if p.json {
					return p.printJSON(prompt)
				}
				width, _ := p.terminal()
				term.DrawPrompt(p.Out, prompt, width)
				return nil
			})
		},
	}
	p.withJSON(cmd)
	return cmd
}
