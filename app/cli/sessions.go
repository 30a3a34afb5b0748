package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) sessions() *cobra.Command {
	cmd := &cobra.Command{Use: "sessions", Short: "Look at conversations"}
	limit, cursor := 0, ""
	list := &cobra.Command{
		Use:   "list",
		Short: "List the sessions, newest activity first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				return p.listSessions(ctx, s, core.PageQuery{Limit: limit, Cursor: cursor})
			})
		},
	}
	list.Flags().IntVar(&limit, "limit", core.DefaultPageLimit, "how many")
	list.Flags().StringVar(&cursor, "cursor", "", "go on after an earlier list")
	last := 0
	show := &cobra.Command{
		Use:   "show <id>",
		Short: "Show a session: its summary, its newest messages and its context",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				return p.showSession(ctx, s, core.SessionID(args[0]), last)
			})
		},
	}
	show.Flags().IntVar(&last, "last", 10, "how many of the newest messages")
	cmd.AddCommand(list, show)
	return cmd
}

func (p *program) listSessions(ctx context.Context, s connection, q core.PageQuery) error {
	page, err := s.client.Sessions(ctx, core.SessionQuery{PageQuery: q})
	if err != nil {
		return err
	}
	if len(page.Items) == 0 {
		fmt.Fprintln(p.Out, "no sessions yet; this begins one: "+programName()+" chat")
		return nil
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tAGENT\tMESSAGES\tSUMMARIZED\tLAST ACTIVITY\tTITLE")
	for _, it := range page.Items {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\n", it.ID, it.Agent, it.MessageCount, it.SummarizedCount,
			it.UpdatedAt.Local().Format(time.DateTime), oneLine(it.Title, 40))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if page.NextCursor != nil {
		fmt.Fprintf(p.Out, "more: %s sessions list --cursor %s\n", programName(), *page.NextCursor)
	}
	return nil
}

func (p *program) showSession(ctx context.Context, s connection, id core.SessionID, last int) error {
	session, err := s.client.Session(ctx, id)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "%s · agent %s · created %s\n", session.ID, session.Agent, session.CreatedAt.Local().Format(time.DateTime))
	fmt.Fprintf(p.Out, "%d messages in history (%d summarized)\n", session.MessageCount, session.SummarizedCount)
	if session.ConversationSummary != nil {
		fmt.Fprintf(p.Out, "\nsummary v%d:\n%s\n", session.SummaryVersion, indent(*session.ConversationSummary))
	}
	if last > 0 {
		page, err := s.client.Messages(ctx, id, core.MessageQuery{
			PageQuery: core.PageQuery{Limit: min(last, core.MaxPageLimit)}, Before: int64(session.MessageCount) + 1,
		})
		if err != nil {
			return err
		}
		fmt.Fprintln(p.Out)
		for _, m := range page.Items {
			fmt.Fprintf(p.Out, "#%-5d %-9s %s\n", m.Seq, m.Role, oneLine(said(m), 100))
		}
	}
	report, err := s.client.Context(ctx, id)
	if err != nil {
		return err
	}
	fmt.Fprintln(p.Out)
	width, _ := p.terminal()
	term.DrawContext(p.Out, report, time.Now(), width)
	return nil
}

// said returns what a message says, tool calls in words.
func said(m core.Message) string {
	if m.Content != "" || len(m.ToolCalls) == 0 {
		return m.Content
	}
	var calls []string
	for _, c := range m.ToolCalls {
		calls = append(calls, c.Name+" "+c.Arguments)
	}
	return strings.Join(calls, "; ")
}

// oneLine returns a text on one line, cut where it is too long.
func oneLine(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}
