package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) contextPlanCommand() *cobra.Command {
	var ask core.PlanPreview
	file := ""
	cmd := &cobra.Command{
		Use:   "plan <id>",
		Short: "Plan the next prompt for another model, policy or message",
		Long: "A dry run: shows whether the next prompt would fit, and what would be summarized, with another\n" +
			"model, another policy, or a given next message. It changes nothing and calls no model.",
		Example: "  bobbin context plan 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 --model gpt-4o --policy budget\n" +
			"  bobbin context plan 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 --file notes.txt",
		Args: requireSessionID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				text, err := p.readText(file)
				if err != nil {
					return err
				}
				ask.Content = text
			}
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				plan, err := s.client.DryRun(ctx, id, ask)
				return p.printOrDraw(plan, err, func(width, _ int) { term.DrawPlan(p.Out, plan, time.Now(), width) })
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&ask.Model, "model", "", "plan for this `model` instead of the session's")
	flags.StringVar(&ask.Policy, "policy", "", "plan with this `policy` instead of the agent's: window, budget, sliding, ratio or off")
	flags.StringVar(&ask.Content, "content", "", "plan with this `text` as the next message")
	flags.StringVar(&file, "file", "", "plan with the content of this `file` as the next message; - is the standard input")
	cmd.MarkFlagsMutuallyExclusive("content", "file")
	p.withJSON(cmd)
	return cmd
}
