package cli

import (
	"context"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) contextPromptCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "prompt <id>",
		Short:   "Show the exact prompt that would be sent now",
		Example: "  bobbin context prompt 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 --json",
		Args:    requireSessionID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				prompt, err := s.client.Prompt(ctx, id)
				return p.printOrDraw(prompt, err, func(width, _ int) { term.DrawPrompt(p.Out, prompt, width) })
			})
		},
	}
	p.withJSON(cmd)
	return cmd
}
