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

func (p *program) runs() *cobra.Command {
	cmd := &cobra.Command{
		Use: "runs", Short: "Look at runs, cancel them, and decide about their tools",
		Long: "A run is one passage of a message through its agent. It may wait for a person who decides whether a\ntool may start.",
		Args: needsCommand, RunE: showHelp,
	}
	list, show, cancel := p.listRuns(), p.showRun(), p.cancelRun()
	approve, deny := p.decideRun("approve", "Let a run's tools start", true), p.decideRun("deny", "Do not let a run's tools start", false)
	p.withJSON(list, show, cancel, approve, deny)
	cmd.AddCommand(list, show, cancel, approve, deny)
	return cmd
}

func (p *program) listRuns() *cobra.Command {
	q := core.PageQuery{}
	cmd := &cobra.Command{
		Use: "list <session id>", Short: "List the runs of a session, the newest first",
		Example: "  bobbin runs list 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243",
		Args:    oneID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				page, err := s.client.Runs(ctx, core.SessionID(args[0]), q)
				if err != nil {
					return err
				}
				if p.json {
					return p.printJSON(page)
				}
				return p.tableRuns(page, args[0])
			})
		},
	}
	cmd.Flags().IntVar(&q.Limit, "limit", core.DefaultPageLimit, "how many")
	cmd.Flags().StringVar(&q.Cursor, "cursor", "", "go on after an earlier list")
	return cmd
}

func (p *program) tableRuns(page core.Page[core.Run], session string) error {
	if len(page.Items) == 0 {
		fmt.Fprintln(p.Out, "no runs yet")
		return nil
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTATUS\tATTEMPT\tACCEPTED\tTOOK\tMESSAGE")
	for _, r := range page.Items {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", r.ID, r.Status, r.Attempt, r.CreatedAt.Local().Format(time.DateTime), took(r), term.Line(r.Input.Content, 40))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if page.NextCursor != nil {
		fmt.Fprintf(p.Out, "more: %s runs list %s --cursor %s\n", programName(), session, *page.NextCursor)
	}
	return nil
}

// took is the time from the start of a run to its end.
func took(r core.Run) string {
	if r.StartedAt == nil || r.FinishedAt == nil {
		return "-"
	}
	return r.FinishedAt.Sub(*r.StartedAt).Round(time.Millisecond).String()
}

// oneRun wants a run's id.
func oneRun(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return core.Errorf(core.ErrInvalid, "which run? %s; %s runs list <session id> shows the ids", cmd.UseLine(), programName())
}

func (p *program) showRun() *cobra.Command {
	return &cobra.Command{
		Use: "show <id>", Short: "Show a run, and what it waits for", Example: "  bobbin runs show 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243",
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				run, err := s.client.Run(ctx, core.RunID(args[0]))
				if err != nil {
					return err
				}
				return p.printRun(run)
			})
		},
	}
}

func (p *program) printRun(r core.Run) error {
	if p.json {
		return p.printJSON(r)
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	line := func(what string, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", what, fmt.Sprintf(format, args...))
	}
	line("run", "%s, %s, attempt %d", r.ID, r.Status, r.Attempt)
	line("session", "%s, agent %s", r.SessionID, term.Clean(r.Agent))
	line("message", "%s", term.Line(r.Input.Content, 80))
	line("accepted", "%s", r.CreatedAt.Local().Format(time.DateTime))
	line("took", "%s", took(r))
	line("tokens", "%s in, %s out", term.Number(r.Usage.InputTokens), term.Number(r.Usage.OutputTokens))
	if r.Error != nil {
		line("error", "%s: %s", r.Error.Code, term.Clean(r.Error.Message))
	}
	for _, a := range r.Approvals {
		line("waits", "%s: %s %s", a.ID, term.Clean(a.Tool), term.Line(a.Arguments, 80))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(r.Approvals) > 0 {
		fmt.Fprintf(p.Out, "to decide: %s runs approve %s, or deny\n", programName(), r.ID)
	}
	return nil
}

func (p *program) cancelRun() *cobra.Command {
	wait := false
	cmd := &cobra.Command{
		Use: "cancel <id>", Short: "Cancel a run; what it said so far is kept", Example: "  bobbin runs cancel 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 --wait",
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				run, err := s.client.CancelRun(ctx, core.RunID(args[0]), wait)
				if err != nil {
					return err
				}
				return p.printRun(run)
			})
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "until it has ended")
	return cmd
}

// decideRun makes the command that answers the questions of a waiting run.
func (p *program) decideRun(verb, short string, approve bool) *cobra.Command {
	comment := ""
	cmd := &cobra.Command{
		Use: verb + " <id> [approval]", Short: short,
		Long:    short + ": the tool calls that the run waits for, or the one that is named. The first answer counts.",
		Example: "  bobbin runs " + verb + " 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return oneRun(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				return p.decide(ctx, s, args, core.ApprovalDecision{Approve: approve, Comment: comment})
			})
		},
	}
	cmd.Flags().StringVar(&comment, "comment", "", "why; the agent reads it when the tool may not start")
	return cmd
}

// decide answers the questions of a run: all, or the one that is named.
func (p *program) decide(ctx context.Context, s connection, args []string, d core.ApprovalDecision) error {
	run, err := s.client.Run(ctx, core.RunID(args[0]))
	if err != nil {
		return err
	}
	var ids []core.ApprovalID
	for _, a := range run.Approvals {
		ids = append(ids, a.ID)
	}
	if len(args) == 2 {
		ids = []core.ApprovalID{core.ApprovalID(args[1])}
	}
	if len(ids) == 0 {
		return core.Errorf(core.ErrConflict, "the run waits for nobody: it has %s", run.Status)
	}
	decided := make([]core.Approval, 0, len(ids))
	for _, id := range ids {
		a, err := s.client.Decide(ctx, run.ID, id, d)
		if err != nil {
			return err
		}
		decided = append(decided, a)
		fmt.Fprintf(p.aside(), "%s: %s %s\n", a.Status, term.Clean(a.Tool), strings.TrimSpace(term.Line(a.Arguments, 80)))
	}
	if p.json {
		return p.printJSON(core.Page[core.Approval]{Items: decided})
	}
	return nil
}
