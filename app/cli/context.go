package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) context() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "context <id>",
		Short: "Show what a session's next prompt is made of, and why",
		Long: "Shows the context of a session: the window by section, how near the next summary is, the last\n" +
			"summaries, and where the messages are. What the commands below show is the same plan.",
		Example: "  bobbin context 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243\n" +
			"  bobbin context plan 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 --policy sliding",
		Args: oneID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				report, err := s.client.Context(ctx, core.SessionID(args[0]))
				if err != nil {
					return err
				}
				if p.json {
					return p.printJSON(report)
				}
				width, _ := p.terminal()
				term.DrawContext(p.Out, report, time.Now(), width)
				return nil
			})
		},
	}
	p.withJSON(cmd)
	cmd.AddCommand(p.contextPrompt(), p.contextPlan(), p.contextMessage())
	return cmd
}
