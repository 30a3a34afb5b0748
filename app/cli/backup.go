package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
	"bobbin/app/ops"
)

func (p *program) backupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup <file>",
		Short: "Back up the SQLite database while the server runs",
		Long: "Writes a consistent copy of the database to a new file and checks it. The server keeps running. To\n" +
			"restore: stop the server, replace bobbin.db by the copy, and remove bobbin.db-wal and bobbin.db-shm.\n" +
			"For PostgreSQL use its own tools: see docs/OPERATION.md.",
		Example: "  bobbin backup /backups/bobbin-$(date +%F).db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, origins, err := p.loadServerSettings(cmd)
			if err != nil {
				return err
			}
			logger, err := p.newLogger(cfg, origins, true)
			if err != nil {
				return err
			}
			copied, err := ops.Backup(cmd.Context(), cfg, logger, args[0], currentActor())
			if err != nil {
				return err
			}
			if p.json {
				return p.printJSON(copied)
			}
			fmt.Fprintf(p.Out, "wrote %s bytes to %s, verified, schema version %d\n", core.Number(int(copied.Bytes)), term.Clean(copied.Path), copied.Version)
			return nil
		},
	}
	p.withJSON(cmd)
	return cmd
}
