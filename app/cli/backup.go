package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"bobbin/app"
	"bobbin/app/cli/term"
)

func (p *program) backup() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup <file>",
		Short: "Copy the SQLite database while the server runs",
		Long: "Writes everything that is stored at this moment into a new file, and checks the copy. The server\n" +
			"goes on meanwhile. To go back: stop the server, put the copy in the place of bobbin.db, and remove\n" +
			"bobbin.db-wal and bobbin.db-shm. PostgreSQL has its own tools: see docs/OPERATION.md.",
		Example: "  bobbin backup /backups/bobbin-$(date +%F).db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, origins, err := p.load(cmd)
			if err != nil {
				return err
			}
			logger, err := p.logger(cfg, origins, true)
			if err != nil {
				return err
			}
			copied, err := app.Backup(cmd.Context(), cfg, logger, args[0], actor())
			if err != nil {
				return err
			}
			if p.json {
				return p.printJSON(copied)
			}
			fmt.Fprintf(p.Out, "%s bytes in %s, sound, schema version %d\n", term.Number(int(copied.Bytes)), term.Clean(copied.Path), copied.Version)
			return nil
		},
	}
	p.withJSON(cmd)
	return cmd
}
