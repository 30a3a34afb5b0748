package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

func (p *program) sessions() *cobra.Command {
	cmd := &cobra.Command{Use: "sessions", Short: "Look at conversations", Args: needsCommand, RunE: showHelp}
	cmd.AddCommand(p.purgeSessions(), p.forkSession())
	limit, cursor := 0, ""
	list := &cobra.Command{
		Use:   "list",
		Short: "List the sessions, newest activity first", Example: "  bobbin sessions list --limit 10",
		Args: noArguments,
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
		Use:     "show <id>",
		Short:   "Show a session: its summary, its newest messages and its context",
		Example: "  bobbin sessions show 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 --last 20",
		Args:    oneID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				return p.showSession(ctx, s, core.SessionID(args[0]), last)
			})
		},
	}
	p.withJSON(list, show)
	show.Flags().IntVar(&last, "last", 10, "how many of the newest messages")
	cmd.AddCommand(list, show, p.exportSession())
	return cmd
}

func (p *program) listSessions(ctx context.Context, s connection, q core.PageQuery) error {
	page, err := s.client.Sessions(ctx, core.SessionQuery{PageQuery: q})
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(page)
	}
	if len(page.Items) == 0 {
		fmt.Fprintln(p.Out, "no sessions yet; this begins one: "+programName()+" chat")
		return nil
	}
	width, _ := p.terminal()
	if width > 0 && width < tableWidth {
		p.stackSessions(page.Items, width)
	} else if err := p.tableSessions(page.Items); err != nil {
		return err
	}
	if page.NextCursor != nil {
		fmt.Fprintf(p.Out, "more: %s sessions list --cursor %s\n", programName(), *page.NextCursor)
	}
	return nil
}

// tableWidth is how many columns the table of sessions takes.
const tableWidth = 100

// tableSessions prints a line for each session.
func (p *program) tableSessions(items []core.Session) error {
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tAGENT\tMESSAGES\tSUMMARIZED\tLAST ACTIVITY")
	for _, it := range items {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s", it.ID, it.Agent, it.MessageCount, it.SummarizedCount, it.UpdatedAt.Local().Format(time.DateTime))
		if it.Title != "" {
			fmt.Fprintf(w, "\t%s", term.Line(it.Title, 40))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// stackSessions prints the same for a narrow terminal: an id, and below it the rest.
func (p *program) stackSessions(items []core.Session, width int) {
	for _, it := range items {
		fmt.Fprintln(p.Out, it.ID)
		about := fmt.Sprintf("%s, %s, %s", it.UpdatedAt.Local().Format("2006-01-02 15:04"), count(int64(it.MessageCount), "message"), it.Agent)
		for _, line := range []string{term.Line(it.Title, width-3), about} {
			if line != "" {
				fmt.Fprintln(p.Out, term.Wrap("  "+line, width, "  "))
			}
		}
	}
}

// shown is a session as `sessions show --json` tells it.
type shown struct {
	Session  core.Session       `json:"session"`
	Messages []core.Message     `json:"messages"` // the newest
	Context  core.ContextReport `json:"context"`
}

func (p *program) showSession(ctx context.Context, s connection, id core.SessionID, last int) error {
	session, err := s.client.Session(ctx, id)
	if err != nil {
		return err
	}
	var page client.MessagePage
	if last > 0 {
		page, err = s.client.Messages(ctx, id, core.MessageQuery{
			PageQuery: core.PageQuery{Limit: min(last, core.MaxPageLimit)}, Before: int64(session.MessageCount) + 1,
		})
		if err != nil {
			return err
		}
	}
	report, err := s.client.Context(ctx, id)
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(shown{session, append([]core.Message{}, page.Items...), report})
	}
	width, _ := p.terminal()
	about := fmt.Sprintf("%s · agent %s · created %s", session.ID, session.Agent, session.CreatedAt.Local().Format(time.DateTime))
	fmt.Fprintln(p.Out, term.Wrap(about, width, "  "))
	if session.Title != "" {
		fmt.Fprintln(p.Out, term.Wrap(session.Title, width, "  "))
	}
	fmt.Fprintf(p.Out, "%d messages in history (%d summarized)\n", session.MessageCount, session.SummarizedCount)
	if session.ConversationSummary != nil {
		fmt.Fprintf(p.Out, "\nsummary v%d:\n%s\n", session.SummaryVersion, indent(*session.ConversationSummary, width))
	}
	for i, m := range page.Items {
		if i == 0 {
			fmt.Fprintln(p.Out)
		}
		fmt.Fprintf(p.Out, "#%-5d %-9s %s\n", m.Seq, m.Role, term.Line(said(m), max(width-18, 20)))
	}
	fmt.Fprintln(p.Out)
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

// indent returns a text that stands below a title, in lines that fit.
func indent(text string, width int) string {
	if width > 0 {
		width -= 2
	}
	return "  " + strings.ReplaceAll(term.Wrap(strings.TrimSpace(text), width, ""), "\n", "\n  ")
}
