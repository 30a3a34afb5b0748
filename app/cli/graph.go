package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"bobbin/app"
)

func (p *program) graph() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "Draw the graph that agents run through",
		Long:  "Prints the agent graph as a Mermaid drawing, or its nodes and edges as JSON.",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			engine, err := app.Graph()
			if err != nil {
				return err
			}
			if !asJSON {
				fmt.Fprint(p.Out, engine.Mermaid())
				return nil
			}
			enc := json.NewEncoder(p.Out)
			enc.SetIndent("", "  ")
			return enc.Encode(engine.Shape())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "nodes and edges as JSON")
	return cmd
}
