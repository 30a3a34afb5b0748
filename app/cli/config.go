package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"bobbin/app"
)

func (p *program) config() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Look at the settings", Args: needsCommand, RunE: showHelp}
	agent := ""
	show := &cobra.Command{
		Use:   "show",
		Short: "Print every setting, its value and where it comes from",
		Long: "Prints every setting, its effective value and where it comes from; secrets are masked.\n" +
			"With --agent it prints the context settings of that agent instead.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if agent != "" {
				return p.showAgent(cmd, agent)
			}
			_, origins, err := p.load(cmd)
			w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
			for _, o := range origins {
				fmt.Fprintf(w, "%s\t%s\t%s\n", o.Key, o.Value, o.From)
			}
			if flushErr := w.Flush(); flushErr != nil {
				return flushErr
			}
			return err
		},
	}
	show.Flags().StringVar(&agent, "agent", "", "the context settings of this agent")
	cmd.AddCommand(show)
	return cmd
}

// showAgent prints an agent's context settings: preset < global < agent's file.
func (p *program) showAgent(cmd *cobra.Command, name string) error {
	cfg, origins, err := p.load(cmd)
	if err != nil {
		return err
	}
	fields, err := app.AgentContext(cfg, origins.Set("context_usage_threshold"), name)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	for _, f := range fields {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Name, f.Value, f.From)
	}
	return w.Flush()
}
