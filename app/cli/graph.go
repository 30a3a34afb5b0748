package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"bobbin/app"
)

func (p *program) graph() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "Draw the graph that agents run through",
		Long:  "Prints the agent graph as a Mermaid drawing, or its nodes and edges as JSON.", Example: "  bobbin graph > graph.mmd",
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			engine, err := app.Graph()
			if err != nil {
				return err
			}
			if p.json {
				return p.printJSON(engine.Shape())
			}
			fmt.Fprint(p.Out, engine.Mermaid())
			return nil
		},
	}
	p.withJSON(cmd)
	return cmd
}
