package cli

import (
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Inspect settings", Args: rejectUnknownCommand, RunE: showHelp}
	show := &cobra.Command{
		Use:   "show",
		Short: "Print every setting, its value and where it comes from",
		Long: "Prints every setting, its effective value and where it comes from; secrets are masked. Those of an agent\n" +
			"are printed by `bobbin agents show`.",
		Example: "  bobbin config show",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, origins, err := p.loadServerSettings(cmd)
			list := make([]setting, 0, len(origins))
			for _, o := range origins {
				list = append(list, setting{o.Key, o.Value, o.From})
			}
			return errors.Join(p.printSettings(list), err)
		},
	}
	p.withJSON(show)
	cmd.AddCommand(show)
	return cmd
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
