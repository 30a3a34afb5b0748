package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) forkSessionCommand() *cobra.Command {
	at := ""
	cmd := &cobra.Command{
		Use:   "fork <id>",
		Short: "Copy a session to continue it in another direction",
		Long: "Copies the current path of a session, or the path up to a message, and prints the id of the copy. The\n" +
			"original session does not change.",
		Example: "  bobbin sessions fork 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243\n" +
			"  bobbin sessions fork 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 --at 01a1fd1b-c4bd-735f-a63d-97094c425b35",
		Args: requireSessionID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				through, err := findMessage(ctx, s.client, id, at)
				if err != nil {
					return err
				}
				fork, err := s.client.ForkSession(ctx, id, through.ID)
				if err != nil {
					return err
				}
				if p.json {
					return p.printJSON(fork)
				}
				fmt.Fprintf(p.Out, "%s has %s\nto continue: %s\n", fork.ID, term.Pluralize(fork.MessageCount, "message"), p.suggestCommand("chat", "--session", string(fork.ID)))
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "copy up to this `message`, by its id or its number")
	p.withJSON(cmd)
	return cmd
}
