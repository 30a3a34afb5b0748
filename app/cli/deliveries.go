package cli

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"bobbin/app/admin"
	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) deliveries() *cobra.Command {
	cmd := &cobra.Command{
		Use: "deliveries", Short: "Webhooks: what was told to whom, and what was not",
		Long: "The deliveries of all owners. The commands work on the database itself, beside a running server.",
		Args: needsCommand, RunE: showHelp,
	}
	list, retry := p.listDeliveries(), p.retryDelivery()
	p.withJSON(list, retry)
	cmd.AddCommand(list, retry)
	return cmd
}

func (p *program) listDeliveries() *cobra.Command {
	q, state := core.DeliveryQuery{}, ""
	cmd := &cobra.Command{
		Use: "list", Short: "List the deliveries, the newest first", Example: "  bobbin deliveries list --state failed",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch q.State = core.DeliveryState(state); q.State {
			case "", core.DeliveryPending, core.DeliveryDelivered, core.DeliveryFailed:
			default:
				return core.Errorf(core.ErrInvalid, "--state must be pending, delivered or failed, not %.40q", state)
			}
			return p.withAdmin(cmd, func(ctx context.Context, s *admin.Service) error {
				page, err := s.Deliveries(ctx, q)
				if err != nil {
					return err
				}
				if p.json {
					return p.printJSON(page)
				}
				return p.tableDeliveries(page)
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only those that are pending, delivered, or failed")
	cmd.Flags().IntVar(&q.Limit, "limit", core.DefaultPageLimit, "how many")
	cmd.Flags().StringVar(&q.Cursor, "cursor", "", "go on after an earlier list")
	return cmd
}

func (p *program) tableDeliveries(page core.Page[core.Delivery]) error {
	if len(page.Items) == 0 {
		fmt.Fprintln(p.Out, "there are no such deliveries")
		return nil
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTATE\tATTEMPT\tMADE\tEVENT\tTO\tERROR")
	for _, d := range page.Items {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", d.ID, d.State, d.Attempt, day(&d.CreatedAt, ""), d.Event, term.Line(d.Target.String(), 60), term.Line(d.Error, 60))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if page.NextCursor != nil {
		fmt.Fprintf(p.Out, "more: --cursor %s\n", *page.NextCursor)
	}
	return nil
}

func (p *program) retryDelivery() *cobra.Command {
	return &cobra.Command{
		Use: "retry <id>…", Short: "Make deliveries again, whatever became of them",
		Long:    "Makes deliveries again, with all their tries before them. A server that runs begins within seconds,\nor else the next one. It is in the audit log.",
		Example: "  bobbin deliveries list --state failed --json | jq -r '.items[].id' | xargs bobbin deliveries retry",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return core.Errorf(core.ErrInvalid, "which delivery? %s deliveries list shows the ids", programName())
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withAdmin(cmd, func(ctx context.Context, s *admin.Service) error {
				list := core.Page[core.Delivery]{Items: []core.Delivery{}}
				for _, id := range args {
					d, err := s.RetryDelivery(ctx, core.DeliveryID(id), actor())
					if err != nil {
						return err
					}
					list.Items = append(list.Items, d)
					fmt.Fprintf(p.aside(), "%s is made again\n", d.ID)
				}
				if p.json {
					return p.printJSON(list)
				}
				return nil
			})
		},
	}
}
