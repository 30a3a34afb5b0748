package cli

import (
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/ops"
)

func (p *program) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Inspect settings", Args: rejectUnknownCommand, RunE: showHelp}
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
			_, origins, err := p.loadServerSettings(cmd)
			list := make([]setting, 0, len(origins))
			for _, o := range origins {
				list = append(list, setting{o.Key, o.Value, o.From})
			}
			return errors.Join(p.printSettings(list), err)
		},
	}
	p.withJSON(show)
	show.Flags().StringVar(&agent, "agent", "", "print the context and compaction settings of this agent")
	cmd.AddCommand(show)
	return cmd
}

// showAgent prints an agent's context settings, in order of precedence: agent's file, global
// settings, preset.
func (p *program) showAgent(cmd *cobra.Command, name string) error {
	cfg, origins, err := p.loadServerSettings(cmd)
	if err != nil {
		return err
	}
	fields, err := ops.AgentContext(cfg, origins.Set("context_usage_threshold"), name)
	if err != nil {
		return err
	}
	return p.printSettings(settingsOf(fields))
}

// settingsOf returns the fields of an agent's file as settings.
func settingsOf(fields []contextwindow.Field) []setting {
	var list []setting
	for _, f := range fields {
		list = append(list, setting{f.Name, f.Value, f.From})
	}
	return list
}

// maxColumnValue is the longest value, in bytes, that printSettings aligns. Longer ones would
// push all origins to the right.
const maxColumnValue = 48

// printSettings prints settings and where they come from.
func (p *program) printSettings(list []setting) error {
	if p.json {
		return p.printJSON(core.Page[setting]{Items: append([]setting{}, list...)})
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	for _, s := range list {
		gap := "\t"
		if len(s.Value) > maxColumnValue {
			gap = "  "
		}
		fmt.Fprintf(w, "%s\t%s%s%s\n", s.Key, s.Value, gap, term.Line(s.From, 0))
	}
	return w.Flush()
}

// setting is an item of `config show --json`.
type setting struct {
	Key   string `json:"key"`
	Value string `json:"value"` // readable, secrets masked
	From  string `json:"from"`
}
