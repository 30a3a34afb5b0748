package cli

import (
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"bobbin/app"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
)

func (p *program) config() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Look at the settings", Args: needsCommand, RunE: showHelp}
	agent := ""
	show := &cobra.Command{
		Use:   "show",
		Short: "Print every setting, its value and where it comes from",
		Long: "Prints every setting, its effective value and where it comes from; secrets are masked.\n" +
			"With --agent it prints the context and compaction settings of that agent instead.",
		Example: "  bobbin config show\n  bobbin config show --agent assistant",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if agent != "" {
				return p.showAgent(cmd, agent)
			}
			_, origins, err := p.load(cmd)
			if p.json {
				return errors.Join(p.printJSON(listOf(origins, func(o config.Origin) setting { return setting{o.Key, o.Value, o.From} })), err)
			}
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
	p.withJSON(show)
	show.Flags().StringVar(&agent, "agent", "", "the context and compaction settings of this agent")
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
	if p.json {
		return p.printJSON(listOf(fields, func(f contextwindow.Field) setting { return setting{f.Name, f.Value, f.From} }))
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	for _, f := range fields {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Name, f.Value, f.From)
	}
	return w.Flush()
}

// setting is a line of `config show --json`.
type setting struct {
	Key   string `json:"key"`
	Value string `json:"value"` // as people read it, secrets masked
	From  string `json:"from"`
}

// listOf returns a list as the API writes lists.
func listOf[T, V any](items []T, view func(T) V) core.Page[V] {
	page := core.Page[V]{Items: make([]V, 0, len(items))}
	for _, it := range items {
		page.Items = append(page.Items, view(it))
	}
	return page
}
