package cli

import (
	"context"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) contextMessageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "message <id> <message>",
		Short: "Show where a message is in the next prompt, and why",
		Long: "Shows whether a message is sent verbatim, covered by a summary (and by which version), masked,\n" +
			"shortened, left out or not sent at all, and why. Name the message by its id or its number.",
		Example: "  bobbin context message 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 12",
		Args:    requireSessionIDAnd("message", true), ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				return p.showMessage(ctx, s, id, args[1])
			})
		},
	}
	p.withJSON(cmd)
	return cmd
}

// showMessage prints where the message with an id or a number is.
func (p *program) showMessage(ctx context.Context, s connection, session core.SessionID, name string) error {
	m, err := findMessage(ctx, s.client, session, name)
	if err != nil {
		return err
	}
	where, err := s.client.Where(ctx, session, m.ID)
	return p.printOrDraw(where, err, func(width, _ int) { term.DrawWhere(p.Out, where, messageText(m), width) })
}
