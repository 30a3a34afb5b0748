package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"bobbin/app/ops"
)

func (p *program) migrateCommand() *cobra.Command {
	status := false
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Migrate the database to the current schema",
		Long: "Applies pending migrations. The server does the same when it starts; use this command to\n" +
			"migrate in a separate step.",
		Example: "  bobbin migrate --status",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, logger, err := p.loadWithLogger(cmd)
			if err != nil {
				return err
			}
			v, err := ops.Migrate(cmd.Context(), cfg, logger, !status)
			if err != nil {
				return err
			}
			if p.json {
				return p.printJSON(struct {
					Database string `json:"database"`
					Version  int64  `json:"version"`
					Newest   int64  `json:"newest"`
					Pending  bool   `json:"pending"`
				}{cfg.Database.URL.String(), v.Current, v.Target, v.Pending()})
			}
			fmt.Fprintf(p.Out, "database %s: version %d, newest %d\n", cfg.Database.URL, v.Current, v.Target)
			return nil
		},
	}
	p.withJSON(cmd)
	cmd.Flags().BoolVar(&status, "status", false, "only print the version")
	return cmd
}
