package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"bobbin/app/ops"
)

func (p *program) graphCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "Print the agent graph",
		Long:  "Prints the agent graph as a Mermaid diagram, or its nodes and edges as JSON.", Example: "  bobbin graph > graph.mmd",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.rejectServerAddress(cmd); err != nil {
				return err
			}
			engine, err := ops.Graph()
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
