package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) contextCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "context <id>",
		Short: "Show what a session's next prompt consists of, and why",
		Long: "Shows the context of a session: the window by section, how close the next summary is, recent\n" +
			"summaries, standing instructions, and where the messages are. Operations of `bobbin api` show the prompt\n" +
			"itself (getPrompt) and the place of one message (whereIsMessage), and change summaries and instructions.",
		Example: "  bobbin context 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243\n" +
			"  bobbin api planContext id=01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 policy=sliding",
		Args: requireSessionID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				report, err := s.client.Context(ctx, id)
				return p.printOrDraw(report, err, func(width, _ int) { term.DrawContext(p.Out, report, time.Now(), width) })
			})
		},
	}
	p.withJSON(cmd)
	return cmd
}
