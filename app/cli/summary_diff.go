package cli

import (
	"context"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) diffSummary() *cobra.Command {
	against := 0
	cmd := &cobra.Command{
		Use:     "diff <id> [version]",
		Short:   "Show what a version changed, against the one before or another one",
		Example: "  bobbin summary diff 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243\n  bobbin summary diff 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 5 --against 2",
		Args:    idAnd("version", false), ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("against") {
				against = -1 // the one before
			} else if against < 0 {
				return core.Errorf(core.ErrInvalid, "--against: versions are 1, 2, 3 …; 0 is nothing")
			}
			return p.withVersion(cmd, args, func(ctx context.Context, s connection, id core.SessionID, version int) error {
				diff, err := s.client.DiffSummary(ctx, id, version, against)
				if err != nil {
					return err
				}
				if p.json {
					return p.printJSON(diff)
				}
				width, _ := p.terminal()
				term.DrawDiff(p.Out, diff, width)
				return nil
			})
		},
	}
	cmd.Flags().IntVar(&against, "against", 0, "the other `version`; 0 is nothing (default: the one before)")
	p.withJSON(cmd)
	return cmd
}
