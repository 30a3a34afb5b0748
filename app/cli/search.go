package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) search() *cobra.Command {
	var q core.SearchQuery
	cmd := &cobra.Command{
		Use:   "search <words>",
		Short: "Find messages by their words, newest first",
		Long: "Finds messages that have all the words, in any order. \"Words in quotes\" follow each other\n" +
			"(your shell needs quotes around them), -word must not be there (write -- before it), and\n" +
			"begin* stands for all words that begin so.",
		Example: "  bobbin search invoice 4711\n  bobbin search '\"connection refused\"' --role tool",
		Args:    needsWords,
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Text = strings.Join(args, " ")
			return p.withServer(cmd, func(ctx context.Context, s connection) error { return p.searchMessages(ctx, s, q) })
		},
	}
	p.withJSON(cmd)
	flags := cmd.Flags()
	flags.StringVar((*string)(&q.SessionID), "session", "", "only in the session of this `id`")
	flags.StringVar(&q.UserID, "user", "", "only in sessions of this `user`")
	flags.StringVar((*string)(&q.Role), "role", "", "only what this `role` said: user, assistant, tool or system")
	flags.BoolVar(&q.AllBranches, "all-branches", false, "also messages that an edit or a new answer replaced")
	flags.IntVar(&q.Limit, "limit", 20, "how many")
	flags.StringVar(&q.Cursor, "cursor", "", "go on after an earlier search")
	return cmd
}

// needsWords takes any number of words but none.
func needsWords(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return core.Errorf(core.ErrInvalid, "what to look for? %s", cmd.UseLine())
	}
	return nil
}

func (p *program) searchMessages(ctx context.Context, s connection, q core.SearchQuery) error {
	page, err := s.client.Search(ctx, q)
	if err != nil {
		return err
	}
	if page.Indexing {
		fmt.Fprintln(p.Err, "older messages are still being made searchable: some may be missing")
	}
	if p.json {
		return p.printJSON(page)
	}
	if len(page.Items) == 0 {
		fmt.Fprintln(p.Out, "nothing found; words are found whole, and by their beginning with a star: pump*")
		return nil
	}
	width, _ := p.terminal()
	for i, h := range page.Items {
		if i > 0 {
			fmt.Fprintln(p.Out)
		}
		fmt.Fprintf(p.Out, "%s  #%d  %s  %s", h.SessionID, h.Seq, h.Role, h.CreatedAt.Local().Format(time.DateTime))
		if h.SessionTitle != "" {
			fmt.Fprintf(p.Out, "  %s", term.Line(h.SessionTitle, 40))
		}
		fmt.Fprintf(p.Out, "\n%s\n", indent(term.Found(h), width))
	}
	if page.NextCursor != nil {
		fmt.Fprintf(p.Out, "\nmore: the same command with --cursor %s\n", *page.NextCursor)
	}
	return nil
}
