package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) contextPlan() *cobra.Command {
	var ask core.DryRun
	file := ""
	cmd := &cobra.Command{
		Use:   "plan <id>",
		Short: "Plan the next prompt for another model, policy or message",
		Long: "A dry run: says whether the next prompt would fit, and what would be summarized, with another\n" +
			"model, another policy, or a text as the next message. Nothing is changed and no model is called.",
		Example: "  bobbin context plan 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 --model gpt-4o --policy budget\n" +
			"  bobbin context plan 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 --file notes.txt",
		Args: oneID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				text, err := p.readText(file)
				if err != nil {
					return err
				}
				ask.Content = text
			}
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				plan, err := s.client.DryRun(ctx, core.SessionID(args[0]), ask)
				if err != nil {
					return err
				}
				if p.json {
					return p.printJSON(plan)
				}
				width, _ := p.terminal()
				term.DrawPlan(p.Out, plan, time.Now(), width)
				return nil
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&ask.Model, "model", "", "this `model` instead of the session's")
	flags.StringVar(&ask.Policy, "policy", "", "this `policy` instead of the agent's: window, budget, sliding, ratio or off")
	flags.StringVar(&ask.Content, "content", "", "with this `text` as the next message")
	flags.StringVar(&file, "file", "", "with what this `file` says as the next message; - is the standard input")
	cmd.MarkFlagsMutuallyExclusive("content", "file")
	p.withJSON(cmd)
	return cmd
}
