package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"bobbin/app/core"
)

func (p *program) forkSession() *cobra.Command {
	at := ""
	cmd := &cobra.Command{
		Use:   "fork <id>",
		Short: "Copy a session, to go on with it in another way",
		Long: "Copies a session with its current path, or up to a message, and prints the copy's id. The session\n" +
			"itself is not changed.",
		Example: "  bobbin sessions fork 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243\n" +
			"  bobbin sessions fork 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 --at 01a1fd1b-c4bd-735f-a63d-97094c425b35",
		Args: oneID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				fork, err := s.client.ForkSession(ctx, core.SessionID(args[0]), core.MessageID(at))
				if err != nil {
					return err
				}
				if p.json {
					return p.printJSON(fork)
				}
				fmt.Fprintf(p.Out, "%s has %s\nto go on: %s chat --session %s\n", fork.ID, count(int64(fork.MessageCount), "message"), programName(), fork.ID)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "the last `message` that is copied, by its id")
	p.withJSON(cmd)
	return cmd
}
