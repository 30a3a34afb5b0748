package cli

import (
	"context"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) diffSummaryCommand() *cobra.Command {
	against := 0
	cmd := &cobra.Command{
		Use:     "diff <id> [version]",
		Short:   "Show what a version changed, compared to the previous or another version",
		Example: "  bobbin summary diff 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243\n  bobbin summary diff 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 5 --against 2",
		Args:    requireSessionIDAnd("version", false), ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("against") {
				against = -1 // the previous version
			} else if against < 0 {
				return core.Errorf(core.ErrInvalid, "--against: versions are 1, 2, 3 …; 0 is an empty summary")
			}
			return p.withVersion(cmd, args, func(ctx context.Context, s connection, id core.SessionID, version int) error {
				diff, err := s.client.DiffSummary(ctx, id, version, against)
				return p.printOrDraw(diff, err, func(width, _ int) { term.DrawDiff(p.Out, diff, width) })
			})
		},
	}
	cmd.Flags().IntVar(&against, "against", 0, "compare to this `version`; 0 is an empty summary (default: the previous version)")
	p.withJSON(cmd)
	return cmd
}
