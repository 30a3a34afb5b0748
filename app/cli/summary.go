package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) summaryCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "summary", Short: "Show and undo a session's summary", Args: rejectUnknownCommand, RunE: showHelp}
	show := &cobra.Command{
		Use:     "show <id> [version]",
		Short:   "Show the active summary, or another version",
		Example: "  bobbin summary show 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243\n  bobbin summary show 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 2",
		Args:    requireSessionIDAnd("version", false), ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withVersion(cmd, args, func(ctx context.Context, s connection, id core.SessionID, version int) error {
				summary, err := s.client.Summary(ctx, id, version)
				return p.printOrDraw(summary, err, func(width, height int) { term.DrawSummary(p.Out, summary, time.Now(), width, height) })
			})
		},
	}
	var q core.PageQuery
	list := &cobra.Command{
		Use:     "list <id>",
		Short:   "List the versions, newest first",
		Example: "  bobbin summary list 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243",
		Args:    requireSessionID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				return p.listSummaries(ctx, s, id, q)
			})
		},
	}
	addPageFlags(list, &q)
	p.withJSON(show, list)
	cmd.AddCommand(show, list, p.undoSummaryCommand())
	return cmd
}

func (p *program) listSummaries(ctx context.Context, s connection, id core.SessionID, q core.PageQuery) error {
	page, err := s.client.Summaries(ctx, id, q)
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(page)
	}
	width, _ := p.terminalSize()
	term.DrawVersions(p.Out, page.Items, time.Now(), width)
	p.printMore(page.NextCursor, "summary list "+string(id))
	return nil
}

// withVersion calls do with the version of the second argument, or with the active one.
func (p *program) withVersion(cmd *cobra.Command, args []string, do func(context.Context, connection, core.SessionID, int) error) error {
	version := 0
	if len(args) > 1 {
		var err error
		if version, err = versionOf(args[1]); err != nil {
			return err
		}
	}
	return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
		if len(args) > 1 {
			return do(ctx, s, id, version)
		}
		session, err := s.client.Session(ctx, id)
		if err == nil && session.SummaryVersion == 0 {
			err = core.Errorf(core.ErrUnprocessable, "this session has no active summary; %s shows earlier versions", p.suggestCommand("summary", "list", string(id)))
		}
		if err != nil {
			return err
		}
		return do(ctx, s, id, session.SummaryVersion)
	})
}

// versionOf parses a version: 2 or v2.
func versionOf(text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(text, "v"))
	if err != nil || n < 0 {
		return 0, core.Errorf(core.ErrInvalid, "%q is not a version; versions are 1, 2, 3 …", text)
	}
	return n, nil
}
