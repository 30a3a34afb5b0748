package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	operations "bobbin/app/api/ops"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/ops"
)

func (p *program) searchCommand() *cobra.Command {
	var q core.SearchQuery
	var after, before string
	cmd := &cobra.Command{
		Use:   "search <words>",
		Short: "Search messages, the best first",
		Long: "Finds the messages that answer a question best: those with the rare words of it, in any of their forms.\n" +
			"\"Words in quotes\" must be in a message as a phrase (quote them for your shell), messages with -word\n" +
			"are left out (write -- before it), and begin* matches all words that start with begin.\n" +
			"With --sort newest, messages must have all the words as they are written; the newest comes first.",
		Example: "  bobbin search when did the pump of hall three fail\n  bobbin search '\"connection refused\"' --role tool --after 2026-01-31",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return core.Errorf(core.ErrInvalid, "no search words given: %s", cmd.UseLine())
			}
			q.Text = strings.Join(args, " ")
			var err, err2 error
			q.After, err = parseDate(after)
			q.Before, err2 = parseDate(before)
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			return p.withServer(cmd, func(ctx context.Context, s connection) error { return p.searchMessages(ctx, s, q) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar((*string)(&q.SessionID), "session", "", "search only the session with this `id`")
	flags.StringVar(&q.UserID, "user", "", "search only sessions of this `user`")
	flags.StringVar((*string)(&q.Role), "role", "", "search only messages of this `role`: user, assistant, tool or system")
	flags.StringVar((*string)(&q.Sort), "sort", "", "`order`: relevance (the default) or newest")
	flags.StringVar(&q.Agent, "agent", "", "search only sessions with this `agent`")
	flags.StringVar(&q.Author, "author", "", "search only messages of this author: a `name` or a user's id")
	flags.StringVar(&after, "after", "", "search only messages of this `time` or later: 2026-01-31, or 2026-01-31T12:00:00Z")
	flags.StringVar(&before, "before", "", "search only messages before this `time`")
	flags.BoolVar(&q.AllBranches, "all-branches", false, "include messages that an edit or a new answer replaced")
	flags.IntVar(&q.Limit, "limit", 20, "maximum number of results")
	flags.StringVar(&q.Cursor, "cursor", "", "continue an earlier search")
	cmd.AddCommand(p.reindexSearchCommand())
	return p.withJSON(cmd)
}

func (p *program) reindexSearchCommand() *cobra.Command {
	rest := false
	cmd := &cobra.Command{
		Use: "reindex", Short: "Rebuild the search index", Example: "  bobbin search reindex",
		Long: "Indexes all messages again, on the database of the settings, whether a server runs on it or not. Searches\n" +
			"work meanwhile. You can interrupt it: the server goes on, or the command with --rest.\n" +
			"To search for the word reindex, write: search -- reindex.",
		Args: noArguments,
	}
	cmd.Flags().BoolVar(&rest, "rest", false, "index only what is not indexed yet")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, logger, err := p.withLogger(p.loadServerSettings(cmd))
		if err != nil {
			return err
		}
		return ops.ReindexSearch(cmd.Context(), cfg, logger, !rest, func(left int64) {
			if left > 0 {
				fmt.Fprintf(p.noticeWriter(), "%s messages left\n", core.Number(int(left)))
				return
			}
			fmt.Fprintln(p.Out, "all messages are indexed")
		})
	}
	return cmd
}

func (p *program) searchMessages(ctx context.Context, s connection, q core.SearchQuery) error {
	page, err := client.Call(ctx, s.client, operations.Search, q)
	if err != nil {
		return err
	}
	if page.Indexing {
		fmt.Fprintln(p.Err, "older messages are still being indexed; some may be missing")
	}
	if page.Meaning == core.MeaningUnavailable {
		fmt.Fprintln(p.Err, "the embedding model does not answer; only messages with these words were looked for")
	}
	if p.json {
		return p.printJSON(page)
	}
	if len(page.Items) == 0 {
		fmt.Fprintln(p.Out, "nothing found; try other words, or the beginning of one with a star: pump*")
		return nil
	}
	width, _ := p.terminalSize()
	for i, h := range page.Items {
		if i > 0 {
			fmt.Fprintln(p.Out)
		}
		term.DrawHit(p.Out, h, time.Local, width)
	}
	if page.NextCursor != nil {
		if page.Total != nil && *page.Total > len(page.Items) {
			fmt.Fprintf(p.Out, "\n%d results in all", *page.Total)
		}
		fmt.Fprintf(p.Out, "\nmore: add --cursor %s to the same command\n", *page.NextCursor)
	}
	return nil
}
