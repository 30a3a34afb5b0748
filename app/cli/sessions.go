package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/api/ops"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

func (p *program) sessionsCommand() *cobra.Command {
	var q core.PageQuery
	list := &cobra.Command{
		Use:   "list",
		Short: "List sessions, most recent activity first", Example: "  bobbin sessions list --limit 10",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				page, err := client.Call(ctx, s.client, ops.ListSessions, core.SessionQuery{PageQuery: q})
				return printList(p, page, err, list[core.Session]{
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
		Args:    requireSessionID(), ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				return p.showSession(ctx, s, id, last)
			})
		},
	}
	show.Flags().IntVar(&last, "last", 10, "number of recent messages to show")
	return groupOf("sessions", "List, show, export and remove sessions", p.withJSON(list), p.withJSON(show), p.exportSessionCommand(), p.purgeSessionsCommand())
}

type sessionDetails struct {
	Session  core.Session            `json:"session"`
	Messages []core.Message          `json:"messages"` // the newest
	Context  core.ContextReport      `json:"context"`
	Slack    *core.SlackThreadStatus `json:"slack,omitempty"` // its thread, if it has one
}

func (p *program) showSession(ctx context.Context, s connection, id core.SessionID, last int) error {
	in := ops.InSession{SessionID: id}
	session, err := client.Call(ctx, s.client, ops.GetSession, in)
	if err != nil {
		return err
	}
	var page ops.MessagePage
	if last > 0 {
		page, err = client.Call(ctx, s.client, ops.ListMessages, ops.MessageList{InSession: in, MessageQuery: core.MessageQuery{
			PageQuery: core.PageQuery{Limit: min(last, core.MaxPageLimit)}, Before: int64(session.MessageCount) + 1,
		}})
		if err != nil {
			return err
		}
	}
	report, err := client.Call(ctx, s.client, ops.GetContext, in)
	if err != nil {
		return err
	}
	thread, err := findSlackThread(ctx, s, id)
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(sessionDetails{session.Session, append([]core.Message{}, page.Items...), report, thread})
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
		text := term.Wrap(strings.TrimSpace(*session.ConversationSummary), max(width-2, 0), "")
		fmt.Fprintf(p.Out, "\nsummary v%d:\n  %s\n", session.SummaryVersion, strings.ReplaceAll(text, "\n", "\n  "))
	}
	room := 0 // in a pipe the texts are whole
	if width > 0 {
		room = max(width-18, 20)
	}
	for i, m := range page.Items {
		if i == 0 {
			fmt.Fprintln(p.Out)
		}
		text := m.Content
		if text == "" {
			var calls []string
			for _, c := range m.ToolCalls {
				calls = append(calls, c.Name+" "+c.Arguments)
			}
			text = strings.Join(calls, "; ")
		}
		if m.Source == core.SourceClient {
			text = "(client) " + text // of a history that a client sent
		}
		fmt.Fprintf(p.Out, "#%-5d %-9s %s\n", m.Seq, m.Role, term.Line(text, room))
	}
	fmt.Fprintln(p.Out)
	term.DrawContext(p.Out, report, time.Now(), width)
	return nil
}

func (p *program) exportSessionCommand() *cobra.Command {
	format, file := "", ""
	cmd := &cobra.Command{
		Use:   "export <id>",
		Short: "Export a session as JSON, JSON lines or Markdown",
		Long: "Exports a whole session. json (the session, its messages and its summaries) and jsonl\n" +
			"(its messages, one per line) can be imported again; markdown is for reading.",
		Example: "  bobbin sessions export 0192… -o conversation.json\n  bobbin sessions export 0192… --format markdown | less",
		Args:    requireSessionID(), ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				write := func(w io.Writer) error {
					return client.Download(ctx, s.client, ops.ExportSession, ops.SessionExport{InSession: ops.InSession{SessionID: id}, Format: core.ExportFormat(format)}, w)
				}
				if file == "" || file == "-" {
					return write(p.dataOutput(core.ExportFormat(format) == core.ExportMarkdown))
				}
				return p.writeFile(file, write)
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", string(core.ExportJSON), "json, jsonl or markdown")
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this `file` instead of the standard output")
	return cmd
}

// dataOutput returns the standard output: raw for data that goes to another program, byte
// for byte, and cleaned for text that people read.
func (p *program) dataOutput(isText bool) io.Writer {
	if width, _ := p.terminalSize(); width > 0 || isText {
		return p.Out
	}
	return term.Raw(p.Out)
}

// writeFile writes a file completely or not at all.
func (p *program) writeFile(name string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".bobbin-export-*")
	if err != nil {
		return core.Errorf(core.ErrInvalid, "%v", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	out := bufio.NewWriter(f)
	if err := errors.Join(write(out), out.Flush(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err == nil {
		fmt.Fprintf(p.Err, "%s bytes in %s\n", core.Number(int(info.Size())), name)
	}
	return nil
}

func (p *program) contextCommand() *cobra.Command {
	return p.withJSON(&cobra.Command{
		Use:   "context <id>",
		Short: "Show what a session's next prompt consists of, and why",
		Long: "Shows the context of a session: the window by section, how close the next summary is, recent\n" +
			"summaries, standing instructions, and where the messages are. Operations of `bobbin api` show the prompt\n" +
			"itself (getPrompt) and the place of one message (whereIsMessage), and change summaries and instructions.",
		Example: "  bobbin context 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243\n" +
			"  bobbin api planContext id=01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 policy=sliding",
		Args: requireSessionID(), ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				report, err := client.Call(ctx, s.client, ops.GetContext, ops.InSession{SessionID: id})
				return p.printOrDraw(report, err, func(width, _ int) { term.DrawContext(p.Out, report, time.Now(), width) })
			})
		},
	})
}
