package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"bobbin/app"
)

func (p *program) migrate() *cobra.Command {
	status := false
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database up to date",
		Long: "Applies the migrations that the database lacks. The server does the same at its start;\n" +
			"this command is for those who do it in a step of its own.",
		Example: "  bobbin migrate --status",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, origins, err := p.load(cmd)
			if err != nil {
				return err
			}
			logger, err := p.logger(cfg, origins, true)
			if err != nil {
				return err
			}
			v, err := app.Migrate(cmd.Context(), cfg, logger, !status)
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
	cmd.Flags().BoolVar(&status, "status", false, "only say which version it has")
	return cmd
}
