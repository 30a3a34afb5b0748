package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/api/ops"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

func (p *program) usageCommand() *cobra.Command {
	by, from, to := "", "", ""
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show model usage and cost",
		Example: "  bobbin usage                       each day of the last 30\n" +
			"  bobbin usage --by model --from 2026-01-01",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := core.UsageQuery{GroupBy: core.UsageGroup(by), PageQuery: core.PageQuery{Limit: core.MaxPageLimit}}
			if !slices.Contains(core.UsageGroups(), q.GroupBy) {
				return core.Errorf(core.ErrInvalid, "--by must be session, user, agent, model or day, not %q", by)
			}
			for _, d := range []struct {
				flag, text string
				into       *time.Time
				plus       int // days
			}{{"from", from, &q.From, 0}, {"to", to, &q.To, 1}} {
				if d.text == "" {
					continue
				}
				at, err := time.Parse(time.DateOnly, d.text)
				if err != nil {
					return core.Errorf(core.ErrInvalid, "--%s: %q is not a day such as 2026-01-31", d.flag, d.text)
				}
				*d.into = at.AddDate(0, 0, d.plus)
			}
			return p.withServer(cmd, func(ctx context.Context, s connection) error { return p.showUsage(ctx, s, q) })
		},
	}
	cmd.Flags().StringVar(&by, "by", string(core.UsageByDay), "group by session, user, agent, model or day")
	cmd.Flags().StringVar(&from, "from", "", "first `day`, in UTC (default: 30 days ago)")
	cmd.Flags().StringVar(&to, "to", "", "last `day`, in UTC (default: today)")
	return p.withJSON(cmd)
}

// showUsage prints a table of all groups and their total.
func (p *program) showUsage(ctx context.Context, s connection, q core.UsageQuery) error {
	report, err := client.Call(ctx, s.client, ops.GetUsage, q)
	for err == nil && report.NextCursor != nil { // all pages as one
		q.Cursor, q.From, q.To = *report.NextCursor, report.From, report.To
		var page core.UsageReport
		page, err = client.Call(ctx, s.client, ops.GetUsage, q)
		report.Items, report.NextCursor = append(report.Items, page.Items...), page.NextCursor
	}
	if err != nil || p.json {
		return p.printOrDraw(report, err, nil)
	}
	rows := report.Items
	last := report.To.Add(-time.Nanosecond).Format(time.DateOnly)
	if len(rows) == 0 {
		fmt.Fprintf(p.Out, "no model calls from %s to %s\n", report.From.Format(time.DateOnly), last)
		return nil
	}
	if q.GroupBy != core.UsageByDay { // the most expensive first
		slices.SortStableFunc(rows, func(a, b core.UsageRow) int {
			return cmp.Or(cmp.Compare(b.CostMicroUSD, a.CostMicroUSD), cmp.Compare(b.InputTokens+b.OutputTokens, a.InputTokens+a.OutputTokens))
		})
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\tCALLS\tINPUT\tCACHED\tOUTPUT\tCOST\t\n", strings.ToUpper(string(q.GroupBy)))
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\n", cmp.Or(term.Line(r.Key, 40), "–"), usageCells(r.UsageTotal))
	}
	fmt.Fprintf(w, "total\t%s\n", usageCells(report.Total))
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "from %s to %s (UTC)\n", report.From.Format(time.DateOnly), last)
	if n := report.Total.UnpricedCalls; n > 0 {
		fmt.Fprintf(p.Out, "the cost of %d calls is unknown: set input_price and output_price of their models\n", n)
	}
	return nil
}

// usageCells returns the cells of a table row.
func usageCells(u core.UsageTotal) string {
	cost := fmt.Sprintf("$%.4f", float64(u.CostMicroUSD)/1e6)
	switch {
	case u.UnpricedCalls > 0 && u.CostMicroUSD == 0:
		cost = "no price set"
	case u.UnpricedCalls > 0:
		cost = "≥ " + cost
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t", core.Number(int(u.Calls)), core.Number(int(u.InputTokens)), core.Number(int(u.CacheReadTokens)), core.Number(int(u.OutputTokens)), cost)
}
