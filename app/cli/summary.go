package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) summary() *cobra.Command {
	cmd := &cobra.Command{Use: "summary", Short: "Look at a session's summary, and change it", Args: needsCommand, RunE: showHelp}
	show := &cobra.Command{
		Use:     "show <id> [version]",
		Short:   "Show the summary in use, or another version",
		Example: "  bobbin summary show 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243\n  bobbin summary show 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 2",
		Args:    idAnd("version", false), ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withVersion(cmd, args, func(ctx context.Context, s connection, id core.SessionID, version int) error {
				summary, err := s.client.Summary(ctx, id, version)
				if err != nil {
					return err
				}
				if p.json {
					return p.printJSON(summary)
				}
				width, height := p.terminal()
				term.DrawSummary(p.Out, summary, time.Now(), width, height)
				return nil
			})
		},
	}
	var q core.PageQuery
	list := &cobra.Command{
		Use:     "list <id>",
		Short:   "List the versions, the newest first",
		Example: "  bobbin summary list 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243",
		Args:    oneID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				return p.listSummaries(ctx, s, core.SessionID(args[0]), q)
			})
		},
	}
	list.Flags().IntVar(&q.Limit, "limit", core.DefaultPageLimit, "how many")
	list.Flags().StringVar(&q.Cursor, "cursor", "", "go on after an earlier list")
	p.withJSON(show, list)
	cmd.AddCommand(show, list, p.diffSummary(), p.editSummary(), p.restoreSummary(), p.undoSummary())
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
	width, _ := p.terminal()
	term.DrawVersions(p.Out, page.Items, time.Now(), width)
	if page.NextCursor != nil {
		fmt.Fprintf(p.Out, "more: %s summary list %s --cursor %s\n", programName(), id, *page.NextCursor)
	}
	return nil
}

// withVersion calls do with the version that the second word names, or else with the
// one in use.
func (p *program) withVersion(cmd *cobra.Command, args []string, do func(context.Context, connection, core.SessionID, int) error) error {
	id, version := core.SessionID(args[0]), 0
	if len(args) > 1 {
		var err error
		if version, err = versionOf(args[1]); err != nil {
			return err
		}
	}
	return p.withServer(cmd, func(ctx context.Context, s connection) error {
		if len(args) > 1 {
			return do(ctx, s, id, version)
		}
		session, err := s.client.Session(ctx, id)
		if err == nil && session.SummaryVersion == 0 {
			err = core.Errorf(core.ErrUnprocessable, "nothing is summarized in this session; %s summary list %s shows earlier versions", programName(), id)
		}
		if err != nil {
			return err
		}
		return do(ctx, s, id, session.SummaryVersion)
	})
}

// versionOf reads a version: 2 or v2.
func versionOf(text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(text, "v"))
	if err != nil || n < 0 {
		return 0, core.Errorf(core.ErrInvalid, "%q is not a version: they are 1, 2, 3 …", text)
	}
	return n, nil
}
