package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) undoSummaryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "undo <id>",
		Short:   "Undo the last summary",
		Long:    "Restores the previously active version, or no summary if there was none, and shows how to undo that.",
		Example: "  bobbin summary undo 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243",
		Args:    requireSessionID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				done, err := s.client.UndoSummary(ctx, id)
				if err != nil {
					return err
				}
				err = p.printRestored(ctx, s, done.To, done.Session)
				if !p.json {
					fmt.Fprintf(p.Out, "to undo: %s\n", p.suggestCommand("api", "restoreSummary", "id="+string(id), fmt.Sprintf("version=%d", done.From)))
				}
				return err
			})
		},
	}
	p.withJSON(cmd)
	return cmd
}

// printRestored prints the state of a session after a version was restored, and whether it is
// about to be summarized again.
func (p *program) printRestored(ctx context.Context, s connection, version int, session core.Session) error {
	if p.json {
		return p.printJSON(session)
	}
	width, _ := p.terminalSize()
	fmt.Fprintln(p.Out, term.Wrap(term.RestoredText(version, session), width, "  "))
	report, err := s.client.Context(ctx, session.ID)
	if err == nil && report.WillTrigger {
		fmt.Fprintln(p.Out, term.Wrap("summarization will trigger on the next message", width, "  "))
	}
	return err
}
