package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) restoreSummary() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore <id> <version>",
		Short: "Go back to an earlier version; 0 is no summary at all",
		Long: "Makes an earlier version the one in use. It is repeated as a new version, and the messages that it\n" +
			"does not cover are sent word for word again; 0 leaves the session without a summary.",
		Example: "  bobbin summary restore 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 2",
		Args:    idAnd("version", true), ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withVersion(cmd, args, func(ctx context.Context, s connection, id core.SessionID, version int) error {
				session, err := s.client.RestoreSummary(ctx, id, version)
				if err != nil {
					return err
				}
				return p.tellRestored(ctx, s, version, session)
			})
		},
	}
	p.withJSON(cmd)
	return cmd
}

func (p *program) undoSummary() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "undo <id>",
		Short: "Take the last summary back",
		Long: "Goes back to the version that was in use before, or to no summary at all, and says how to take\n" +
			"that back.",
		Example: "  bobbin summary undo 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243",
		Args:    oneID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				done, err := s.client.UndoSummary(ctx, core.SessionID(args[0]))
				if err != nil {
					return err
				}
				err = p.tellRestored(ctx, s, done.To, done.Session)
				if !p.json {
					fmt.Fprintf(p.Out, "this takes it back: %s summary restore %s %d\n", programName(), args[0], done.From)
				}
				return err
			})
		},
	}
	p.withJSON(cmd)
	return cmd
}

// tellRestored says what a session is after a version was restored, and what may come
// of it.
func (p *program) tellRestored(ctx context.Context, s connection, version int, session core.Session) error {
	if p.json {
		return p.printJSON(session)
	}
	width, _ := p.terminal()
	fmt.Fprintln(p.Out, term.Wrap(term.Restored(version, session), width, "  "))
	report, err := s.client.Context(ctx, session.ID)
	if err == nil && report.WillTrigger {
		fmt.Fprintln(p.Out, term.Wrap("summarization will trigger on the next message", width, "  "))
	}
	return err
}
