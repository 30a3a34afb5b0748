package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

func (p *program) sessionsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "sessions", Short: "List, show, export and remove sessions", Args: rejectUnknownCommand, RunE: showHelp}
	cmd.AddCommand(p.purgeSessionsCommand())
	var q core.PageQuery
	list := &cobra.Command{
		Use:   "list",
		Short: "List sessions, most recent activity first", Example: "  bobbin sessions list --limit 10",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				page, err := s.client.Sessions(ctx, core.SessionQuery{PageQuery: q})
				if err != nil {
					return err
				}
				return printList(p, page, list[core.Session]{
					none:   "no sessions yet; start one with: " + p.suggestCommand("chat"),
					titles: "ID|AGENT|MESSAGES|SUMMARIZED|LAST ACTIVITY|TITLE",
					cells: func(s core.Session) []any {
						return []any{s.ID, s.Agent, s.MessageCount, s.SummarizedCount, s.UpdatedAt, term.Line(s.Title, maxTitle)}
					},
					next: "sessions list",
				})
			})
		},
	}
	addPageFlags(list, &q)
	last := 0
	show := &cobra.Command{
		Use:     "show <id>",
		Short:   "Show a session: its summary, recent messages and context",
		Example: "  bobbin sessions show 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 --last 20",
		Args:    requireSessionID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				return p.showSession(ctx, s, id, last)
			})
		},
	}
	p.withJSON(list, show)
	show.Flags().IntVar(&last, "last", 10, "number of recent messages to show")
	cmd.AddCommand(list, show, p.exportSessionCommand())
	return cmd
}

// sessionDetails is the output of `sessions show --json`.
type sessionDetails struct {
	Session  core.Session            `json:"session"`
	Messages []core.Message          `json:"messages"` // the newest
	Context  core.ContextReport      `json:"context"`
	Slack    *core.SlackThreadStatus `json:"slack,omitempty"` // its thread, if it has one
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
	thread, err := findSlackThread(ctx, s, id)
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(sessionDetails{session, append([]core.Message{}, page.Items...), report, thread})
	}
	width, _ := p.terminalSize()
	about := fmt.Sprintf("%s · agent %s · created %s", session.ID, session.Agent, session.CreatedAt.Local().Format(time.DateTime))
	fmt.Fprintln(p.Out, term.Wrap(about, width, "  "))
	if session.Title != "" {
		fmt.Fprintln(p.Out, term.Wrap(session.Title, width, "  "))
	}
	fmt.Fprintf(p.Out, "%d messages in history (%d summarized)\n", session.MessageCount, session.SummarizedCount)
	p.printSlackStatus(thread)
	if session.ConversationSummary != nil {
		fmt.Fprintf(p.Out, "\nsummary v%d:\n%s\n", session.SummaryVersion, indentText(*session.ConversationSummary, width))
	}
	room := 0 // in a pipe the texts are whole
	if width > 0 {
		room = max(width-18, 20)
	}
	for i, m := range page.Items {
		if i == 0 {
			fmt.Fprintln(p.Out)
		}
		text := messageText(m)
		if m.Source == core.SourceClient {
			text = "(client) " + text // of a history that a client sent
		}
		fmt.Fprintf(p.Out, "#%-5d %-9s %s\n", m.Seq, m.Role, term.Line(text, room))
	}
	fmt.Fprintln(p.Out)
	term.DrawContext(p.Out, report, time.Now(), width)
	return nil
}

// messageText returns the text of a message, or its tool calls as text.
func messageText(m core.Message) string {
	if m.Content != "" || len(m.ToolCalls) == 0 {
		return m.Content
	}
	var calls []string
	for _, c := range m.ToolCalls {
		calls = append(calls, c.Name+" "+c.Arguments)
	}
	return strings.Join(calls, "; ")
}

// indentText returns a text to print below a title, in lines that fit.
func indentText(text string, width int) string {
	if width > 0 {
		width -= 2
	}
	return "  " + strings.ReplaceAll(term.Wrap(strings.TrimSpace(text), width, ""), "\n", "\n  ")
}
