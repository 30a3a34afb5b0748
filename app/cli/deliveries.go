package cli

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
	"bobbin/app/ops"
)

func (p *program) deliveriesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "deliveries", Short: "List and retry webhook deliveries",
		Long: "Webhook deliveries of all owners. The commands work on the database directly, also while a server runs.",
		Args: rejectUnknownCommand, RunE: showHelp,
	}
	list, retry := p.listDeliveriesCommand(), p.retryDeliveryCommand()
	p.withJSON(list, retry)
	cmd.AddCommand(list, retry)
	return cmd
}

func (p *program) listDeliveriesCommand() *cobra.Command {
	q, state := core.DeliveryQuery{}, ""
	cmd := &cobra.Command{
		Use: "list", Short: "List deliveries, newest first", Example: "  bobbin deliveries list --state failed",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch q.State = core.DeliveryState(state); q.State {
			case "", core.DeliveryPending, core.DeliveryDelivered, core.DeliveryFailed:
			default:
				return core.Errorf(core.ErrInvalid, "--state must be pending, delivered or failed, not %.40q", state)
			}
			return p.withAdmin(cmd, func(ctx context.Context, s *ops.Service) error {
				page, err := s.Deliveries(ctx, q)
				if err != nil {
					return err
				}
				if p.json {
					return p.printJSON(page)
				}
				return p.printDeliveryTable(page)
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only deliveries that are pending, delivered or failed")
	addPageFlags(cmd, &q.PageQuery)
	return cmd
}

func (p *program) printDeliveryTable(page core.Page[core.Delivery]) error {
	if len(page.Items) == 0 {
		fmt.Fprintln(p.Out, "no deliveries found")
		return nil
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTATE\tATTEMPT\tCREATED\tEVENT\tTO\tERROR")
	for _, d := range page.Items {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", d.ID, d.State, d.Attempt, formatTime(&d.CreatedAt, ""), d.Event, term.Line(d.Target.String(), 60), term.Line(d.Error, 60))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	p.printMore(page.NextCursor, "deliveries list")
	return nil
}

func (p *program) retryDeliveryCommand() *cobra.Command {
	return &cobra.Command{
		Use: "retry <id>…", Short: "Retry deliveries",
		Long:    "Sends deliveries again, whatever their state, with the full number of attempts. A running server starts\nwithin seconds, otherwise the next server that starts. The audit log records the command.",
		Example: "  bobbin deliveries list --state failed --json | jq -r '.items[].id' | xargs bobbin deliveries retry",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return core.Errorf(core.ErrInvalid, "no delivery given; %s deliveries list shows the ids", programName())
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withAdmin(cmd, func(ctx context.Context, s *ops.Service) error {
				list := core.Page[core.Delivery]{Items: []core.Delivery{}}
				for _, id := range args {
					d, err := s.RetryDelivery(ctx, core.DeliveryID(id), currentActor())
					if err != nil {
						return err
					}
					list.Items = append(list.Items, d)
					fmt.Fprintf(p.noticeWriter(), "%s will be retried\n", d.ID)
				}
				if p.json {
					return p.printJSON(list)
				}
				return nil
			})
		},
	}
}
