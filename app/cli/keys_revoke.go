package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"bobbin/app/ops"
)

func (p *program) revokeKeyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke <id>", Short: "Revoke a key",
		Long: "Revokes a key of the database by its id, or by its name if only one valid key has that name. Servers\n" +
			"reject it within two seconds. Requests that are already accepted continue.",
		Example: "  bobbin keys revoke 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243",
		Args:    requireOneArg("which key? bobbin keys list shows the ids"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withAdmin(cmd, func(ctx context.Context, s *ops.Service) error {
				key, err := s.RevokeKey(ctx, args[0], currentActor())
				if err != nil {
					return err
				}
				if p.json {
					return p.printJSON(key)
				}
				fmt.Fprintf(p.Out, "key %s (%s) was revoked on %s\n", key.ID, key.Name, formatTime(key.RevokedAt, ""))
				return nil
			})
		},
	}
	p.withJSON(cmd)
	return cmd
}
