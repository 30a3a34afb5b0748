package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) contextMessage() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "message <id> <message>",
		Short: "Show where a message is in the next prompt, and why",
		Long: "Says whether a message is sent word for word, covered by a summary (and by which version), masked,\n" +
			"shortened, left out or not sent at all, and why. The message is named by its id or its number.",
		Example: "  bobbin context message 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 12",
		Args:    idAnd("message", true), ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				return p.showMessage(ctx, s, core.SessionID(args[0]), args[1])
			})
		},
	}
	p.withJSON(cmd)
	return cmd
}

// showMessage says where the message is that has the id, or the number.
func (p *program) showMessage(ctx context.Context, s connection, session core.SessionID, name string) error {
	id, words := core.MessageID(name), ""
	if n, err := strconv.ParseInt(strings.TrimPrefix(name, "#"), 10, 64); err == nil && n > 0 {
		m, err := s.client.MessageNumber(ctx, session, n)
		if err != nil {
			return err
		}
		id, words = m.ID, said(m)
	}
	where, err := s.client.Where(ctx, session, id)
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(where)
	}
	width, _ := p.terminal()
	term.DrawWhere(p.Out, where, words, width)
	return nil
}
