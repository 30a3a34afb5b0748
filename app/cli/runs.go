package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/api/ops"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

func (p *program) runsCommand() *cobra.Command {
	show := &cobra.Command{
		Use: "show <id>", Short: "Show a run, and what it is waiting for", Example: "  bobbin runs show 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243",
		Args: requireRun(), ValidArgsFunction: p.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withRun(cmd, args[0], func(ctx context.Context, s connection, in ops.InRun) error {
				run, err := client.Call(ctx, s.client, ops.GetRun, in)
				return p.printRun(run, err)
			})
		},
	}
	wait := false
	cancel := &cobra.Command{
		Use: "cancel <id>", Short: "Cancel a run; its partial answer is kept", Example: "  bobbin runs cancel 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 --wait",
		Args: requireRun(), ValidArgsFunction: p.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withRun(cmd, args[0], func(ctx context.Context, s connection, in ops.InRun) error {
				run, err := client.Call(ctx, s.client, ops.CancelRun, ops.Cancel{InRun: in, Wait: wait})
				return p.printRun(run, err)
			})
		},
	}
	cancel.Flags().BoolVar(&wait, "wait", false, "wait until the run has ended")
	cmd := groupOf("runs", "List, show and cancel runs, and approve their tool calls", p.listRunsCommand(), p.withJSON(show), p.withJSON(cancel),
		p.decideRunCommand("approve", "Approve a run's tool calls"), p.decideRunCommand("deny", "Deny a run's tool calls"))
	cmd.Long = "A run processes one message through its agent. It may wait until a person approves a tool call."
	return cmd
}

func (p *program) listRunsCommand() *cobra.Command {
	q := core.PageQuery{}
	cmd := &cobra.Command{
		Use: "list <session id>", Short: "List the runs of a session, newest first",
		Example: "  bobbin runs list 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243",
		Args:    requireSessionID(), ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				page, err := client.Call(ctx, s.client, ops.ListRuns, ops.SessionPage{InSession: ops.InSession{SessionID: id}, PageQuery: q})
				return printList(p, page, err, list[core.Run]{
					none: "no runs yet", titles: "ID|STATUS|ATTEMPT|CREATED|DURATION|MESSAGE",
					cells: func(r core.Run) []any {
						return []any{r.ID, r.Status, r.Attempt, r.CreatedAt, runDuration(r), term.Line(r.Input.Content, 40)}
					},
					next: "runs list " + args[0],
				})
			})
		},
	}
	addPageFlags(cmd, &q)
	return p.withJSON(cmd)
}

func runDuration(r core.Run) string {
	if r.StartedAt == nil || r.FinishedAt == nil {
		return "-"
	}
	return r.FinishedAt.Sub(*r.StartedAt).Round(time.Millisecond).String()
}

func (p *program) printRun(r core.Run, err error) error {
	if err != nil || p.json {
		return p.printOrDraw(r, err, nil)
	}
	var rows [][]string
	line := func(what string, format string, args ...any) {
		rows = append(rows, []string{what, fmt.Sprintf(format, args...)})
	}
	line("run", "%s, %s, attempt %d", r.ID, r.Status, r.Attempt)
	line("session", "%s, agent %s", r.SessionID, r.Agent)
	line("message", "%s", term.Line(r.Input.Content, 80))
	line("created", "%s", r.CreatedAt.Local().Format(time.DateTime))
	line("duration", "%s", runDuration(r))
	line("tokens", "%s in, %s out", core.Number(r.Usage.InputTokens), core.Number(r.Usage.OutputTokens))
	if r.Error != nil {
		line("error", "%s: %s", r.Error.Code, r.Error.Message)
	}
	toDecide := false
	for _, a := range r.Approvals {
		what := ""
		if a.Kind == core.KindClientTool {
			what = ", whose result its client sends"
		}
		toDecide = toDecide || what == ""
		line("waiting", "%s: %s %s%s", a.ID, core.Literal(a.Tool), core.Literal(a.Arguments), what)
	}
	term.WriteTable(p.Out, rows, 0)
	if toDecide {
		fmt.Fprintf(p.Out, "to decide: %s, or deny\n", p.suggestCommand("runs", "approve", string(r.ID)))
	}
	return nil
}

// decideRunCommand returns the command that approves or denies the tool calls of a run.
func (p *program) decideRunCommand(verb, short string) *cobra.Command {
	comment := ""
	cmd := &cobra.Command{
		Use: verb + " <id> [approval]", Short: short,
		Long:    short + ": all that the run is waiting for, or one of them. The first decision wins.",
		Example: "  bobbin runs " + verb + " 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return requireRun()(cmd, args)
		},
		ValidArgsFunction: p.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withRun(cmd, args[0], func(ctx context.Context, s connection, in ops.InRun) error {
				named := strings.Join(args[1:], "") // the beginning of an approval's id
				run, err := client.Call(ctx, s.client, ops.GetRun, in)
				if err != nil {
					return err
				}
				var ids []core.ApprovalID
				for _, a := range run.Approvals {
					if !strings.HasPrefix(string(a.ID), named) || named == "" && a.Kind == core.KindClientTool {
						continue
					}
					ids = append(ids, a.ID)
					fmt.Fprintf(p.noticeWriter(), "%s: %s %s\n", a.ID, core.Literal(a.Tool), core.Literal(a.Arguments))
				}
				switch {
				case named != "" && len(ids) == 0: // the server explains why not
					ids = []core.ApprovalID{core.ApprovalID(named)}
				case named != "" && len(ids) > 1:
					return core.Errorf(core.ErrInvalid, "%d approvals begin with %s; write more of the id", len(ids), named)
				case len(ids) == 0:
					return core.Errorf(core.ErrConflict, "the run is not waiting for an approval: its status is %s", run.Status)
				}
				decided := make([]core.Approval, 0, len(ids))
				for _, id := range ids {
					a, err := client.Call(ctx, s.client, ops.DecideApproval, ops.Decision{InRun: in, ApprovalID: id, Decision: verb, Comment: comment})
					if err != nil {
						return err
					}
					decided = append(decided, a)
					fmt.Fprintf(p.noticeWriter(), "%s: %s\n", a.Status, core.Literal(a.Tool))
				}
				if p.json {
					return p.printJSON(core.Page[core.Approval]{Items: decided})
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&comment, "comment", "", "the reason, which the agent reads if the call is denied")
	return p.withJSON(cmd)
}
